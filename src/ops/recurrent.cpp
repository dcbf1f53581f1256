// Recurrent networks, made of linear maps and pointwise operators: one cell's step, a layer in one direction over the
// steps of a sequence, and the stack of layers. The input's part of all steps of a layer is one product.
#include "ops/common.h"

namespace rush {

namespace {

enum class Cell { lstm, gru, tanh, relu };

struct Weights {
  Tensor w_ih, w_hh, b_ih, b_hh, w_hr;
};

/// What a cell carries from step to step; c is the LSTM's alone.
struct State {
  Tensor h, c;
};

/// The next state from the input's part of the gates.
State step(Cell cell, const Tensor& from_input, const State& s, const Weights& w) {
  const Tensor from_state = linear(s.h, w.w_hh, w.b_hh);
  if (cell == Cell::tanh) return {tanh(from_input + from_state), {}};
  if (cell == Cell::relu) return {relu(from_input + from_state), {}};
  const int64_t parts = cell == Cell::lstm ? 4 : 3, size = from_state.size(-1) / parts;
  const auto part = [size](const Tensor& x, int64_t i) { return narrow(x, -1, i * size, size); };
  if (cell == Cell::lstm) {
    const Tensor gates = from_input + from_state;
    const Tensor c = sigmoid(part(gates, 1)) * s.c + sigmoid(part(gates, 0)) * tanh(part(gates, 2));
    const Tensor h = sigmoid(part(gates, 3)) * tanh(c);
    return {w.w_hr.defined() ? linear(h, w.w_hr) : h, c};
  }
  const Tensor reset = sigmoid(part(from_input, 0) + part(from_state, 0));
  const Tensor update = sigmoid(part(from_input, 1) + part(from_state, 1));
  const Tensor fresh = tanh(part(from_input, 2) + reset * part(from_state, 2));
  return {fresh + update * (s.h - fresh), {}};
}

/// Rows of each step: `sizes[t]` of them, never more than at the step before; all steps in one tensor, one after
/// another.
struct Sequence {
  Tensor rows;
  std::vector<int64_t> sizes;
};

Tensor first_rows(const Tensor& x, int64_t n) { return !x.defined() || x.size(0) == n ? x : narrow(x, 0, 0, n); }

/// One layer in one direction. A sequence that is over keeps its last state; backwards it begins with the first one.
std::pair<Tensor, State> run_layer(Cell cell, const Sequence& x, const State& initial, const Weights& w,
                                   bool backwards) {
  const Tensor from_input = linear(x.rows, w.w_ih, w.b_ih);
  const size_t steps = x.sizes.size();
  std::vector<int64_t> start(steps, 0);
  for (size_t t = 1; t < steps; ++t) start[t] = start[t - 1] + x.sizes[t - 1];
  std::vector<Tensor> outputs(steps), ended_h, ended_c;
  int64_t active = backwards ? x.sizes[steps - 1] : x.sizes[0];
  State now{first_rows(initial.h, active), first_rows(initial.c, active)};
  for (size_t i = 0; i < steps; ++i) {
    const size_t t = backwards ? steps - 1 - i : i;
    const int64_t n = x.sizes[t];
    if (n < active) {
      ended_h.push_back(narrow(now.h, 0, n, active - n));
      if (now.c.defined()) ended_c.push_back(narrow(now.c, 0, n, active - n));
      now = {first_rows(now.h, n), first_rows(now.c, n)};
    } else if (n > active) {
      now.h = cat({now.h, narrow(initial.h, 0, active, n - active)}, 0);
      if (now.c.defined()) now.c = cat({now.c, narrow(initial.c, 0, active, n - active)}, 0);
    }
    active = n;
    now = step(cell, narrow(from_input, 0, start[t], n), now, w);
    outputs[t] = now.h;
  }
  const auto whole = [](const Tensor& last, std::vector<Tensor>& ended) {
    if (ended.empty()) return last;
    ended.push_back(last);
    std::reverse(ended.begin(), ended.end());
    return cat(ended, 0);
  };
  now = {whole(now.h, ended_h), now.c.defined() ? whole(now.c, ended_c) : Tensor()};
  return {steps == 1 ? outputs[0] : cat(outputs, 0), now};
}

struct Network {
  Cell cell;
  bool has_biases;
  int64_t layers;
  double dropout;
  bool train, bidirectional;
};

Weights weights_at(Tensors params, const Network& net, int64_t index) {
  const size_t plain = net.has_biases ? 4 : 2, all = size_t(net.layers) * (net.bidirectional ? 2 : 1);
  const size_t each = params.size() / std::max<size_t>(all, 1), at = size_t(index) * each;
  check(all > 0 && params.size() == all * each && (each == plain || (each == plain + 1 && net.cell == Cell::lstm)),
        "expected ", plain, " parameters for each of ", all, " layers and directions, got ", params.size());
  return {params[at], params[at + 1], net.has_biases ? params[at + 2] : Tensor(),
          net.has_biases ? params[at + 3] : Tensor(), each > plain ? params[at + plain] : Tensor()};
}

/// All layers; h and c (layers * directions, batch, size) give the first states and get the last.
Tensor run(const Network& net, Sequence x, Tensor& h, Tensor& c, Tensors params) {
  const int64_t directions = net.bidirectional ? 2 : 1;
  check(h.dim() == 3 && h.size(0) == net.layers * directions, "Expected hidden size (", net.layers * directions,
        ", batch, size), got ", h.sizes());
  check(!x.sizes.empty() && h.size(1) == x.sizes[0], "Expected hidden batch size ", x.sizes.empty() ? 0 : x.sizes[0],
        ", got ", h.sizes());
  std::vector<Tensor> last_h, last_c;
  for (int64_t layer = 0; layer < net.layers; ++layer) {
    std::vector<Tensor> outputs;
    for (int64_t d = 0; d < directions; ++d) {
      const int64_t index = layer * directions + d;
      const State initial{select(h, 0, index), c.defined() ? select(c, 0, index) : Tensor()};
      auto [rows, last] = run_layer(net.cell, x, initial, weights_at(params, net, index), d == 1);
      outputs.push_back(rows);
      last_h.push_back(last.h);
      if (c.defined()) last_c.push_back(last.c);
    }
    x.rows = directions == 1 ? outputs[0] : cat(outputs, -1);
    if (net.dropout > 0 && net.train && layer + 1 < net.layers) x.rows = dropout(x.rows, net.dropout, true);
  }
  h = stack(last_h, 0);
  if (c.defined()) c = stack(last_c, 0);
  return x.rows;
}

Tensor run_padded(const Network& net, const Tensor& input, Tensor& h, Tensor& c, Tensors params, bool batch_first) {
  check(input.dim() == 3, "input must have 3 dimensions, got ", input.dim());
  const Tensor x = batch_first ? transpose(input, 0, 1) : input;
  const int64_t steps = x.size(0), batch = x.size(1);
  check(steps > 0, "Expected sequence length to be larger than 0 in RNN");
  const Tensor rows =
      run(net, {reshape(x, {steps * batch, x.size(2)}), std::vector<int64_t>(size_t(steps), batch)}, h, c, params);
  const Tensor out = reshape(rows, {steps, batch, rows.size(-1)});
  return batch_first ? transpose(out, 0, 1) : out;
}

Tensor run_packed(const Network& net, const Tensor& data, const Tensor& batch_sizes, Tensor& h, Tensor& c,
                  Tensors params) {
  check(batch_sizes.dtype() == kInt64 && batch_sizes.dim() == 1, "batch_sizes must be a vector of int64");
  const Tensor sizes = contiguous(batch_sizes);
  const int64_t* first = sizes.data<int64_t>();
  return run(net, {data, std::vector<int64_t>(first, first + sizes.numel())}, h, c, params);
}

void check_states(Tensors hx) { check(hx.size() == 2, "lstm expects two hidden states"); }

constexpr const char* kPaddedDoc =
    R"(Runs a recurrent network over input (steps, batch, features), or (batch, steps, features) with ``batch_first``.

hx: the first states (layers * directions, batch, size). Results: the last layer's states of all steps, and the last states.
Errors: RuntimeError where shapes do not fit.)";
constexpr const char* kPackedDoc =
    R"(The same over a packed sequence: the rows of all steps in one tensor, ``batch_sizes[t]`` of them at step t.)";

#define RUSH_RECURRENT(name, kind)                                                                                     \
  OP_DEFINE(name){{.doc = kPaddedDoc,                                                                                  \
                   .composite =                                                                                        \
                       [](const Tensor& x, const Tensor& hx, Tensors params, bool biases, int64_t layers,              \
                          double dropout, bool train, bool bidirectional, bool batch_first) {                          \
                         Tensor h = hx, c;                                                                             \
                         const Tensor y = run_padded({kind, biases, layers, dropout, train, bidirectional}, x, h, c,   \
                                                     params, batch_first);                                             \
                         return std::array{y, h};                                                                      \
                       }},                                                                                             \
                  {.doc = kPackedDoc,                                                                                  \
                   .composite = [](const Tensor& data, const Tensor& sizes, const Tensor& hx, Tensors params,          \
                                   bool biases, int64_t layers, double dropout, bool train, bool bidirectional) {      \
                     Tensor h = hx, c;                                                                                 \
                     const Tensor y =                                                                                  \
                         run_packed({kind, biases, layers, dropout, train, bidirectional}, data, sizes, h, c, params); \
                     return std::array{y, h};                                                                          \
                   }}};
#define RUSH_RECURRENT_CELL(name, kind)                                                                               \
  OP_DEFINE(name){                                                                                                    \
      {.doc = R"(One step of the recurrent network: the next state from input (batch, features) and state.)",         \
       .composite = [](const Tensor& x, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih, \
                       const Tensor& b_hh) {                                                                          \
         return step(kind, linear(x, w_ih, b_ih), {hx, {}}, {w_ih, w_hh, b_ih, b_hh, {}}).h;                          \
       }}};

}  // namespace

OP_DEFINE(lstm){{.doc = kPaddedDoc,
                 .composite =
                     [](const Tensor& x, Tensors hx, Tensors params, bool biases, int64_t layers, double dropout,
                        bool train, bool bidirectional, bool batch_first) {
                       check_states(hx);
                       Tensor h = hx[0], c = hx[1];
                       const Tensor y = run_padded({Cell::lstm, biases, layers, dropout, train, bidirectional}, x, h, c,
                                                   params, batch_first);
                       return std::array{y, h, c};
                     }},
                {.doc = kPackedDoc,
                 .composite = [](const Tensor& data, const Tensor& sizes, Tensors hx, Tensors params, bool biases,
                                 int64_t layers, double dropout, bool train, bool bidirectional) {
                   check_states(hx);
                   Tensor h = hx[0], c = hx[1];
                   const Tensor y = run_packed({Cell::lstm, biases, layers, dropout, train, bidirectional}, data, sizes,
                                               h, c, params);
                   return std::array{y, h, c};
                 }}};

OP_DEFINE(lstm_cell){{
    .doc = R"(One step of an LSTM: the next h and c from input (batch, features) and hx = (h, c).)",
    .composite =
        [](const Tensor& x, Tensors hx, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
           const Tensor& b_hh) {
          check_states(hx);
          const State next = step(Cell::lstm, linear(x, w_ih, b_ih), {hx[0], hx[1]}, {w_ih, w_hh, b_ih, b_hh, {}});
          return std::array{next.h, next.c};
        },
}};

RUSH_RECURRENT(gru, Cell::gru)
RUSH_RECURRENT(rnn_tanh, Cell::tanh)
RUSH_RECURRENT(rnn_relu, Cell::relu)
RUSH_RECURRENT_CELL(gru_cell, Cell::gru)
RUSH_RECURRENT_CELL(rnn_tanh_cell, Cell::tanh)
RUSH_RECURRENT_CELL(rnn_relu_cell, Cell::relu)

}  // namespace rush
