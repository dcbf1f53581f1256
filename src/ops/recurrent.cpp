// Recurrent networks: one cell's step, a layer in one direction over the steps of a sequence, and the stack of layers.
// The input's part of all steps of a layer is one product; the steps are one operator where there is a kernel for it,
// and linear maps and pointwise operators elsewhere and in second derivatives.
#include "kernels/cpu/recurrent.h"

#include "ops/again.h"

namespace rush {

namespace {

using cpu::Cell;

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

/// The steps of a layer in one direction. A sequence that is over keeps its last state; backwards it begins with the
/// first one.
std::pair<Tensor, State> unroll(Cell cell, const Tensor& from_input, Ints sizes, const State& initial, const Weights& w,
                                bool backwards) {
  const size_t steps = sizes.size();
  std::vector<int64_t> start(steps, 0);
  for (size_t t = 1; t < steps; ++t) start[t] = start[t - 1] + sizes[t - 1];
  std::vector<Tensor> outputs(steps), ended_h, ended_c;
  int64_t active = backwards ? sizes[steps - 1] : sizes[0];
  State now{first_rows(initial.h, active), first_rows(initial.c, active)};
  for (size_t i = 0; i < steps; ++i) {
    const size_t t = backwards ? steps - 1 - i : i;
    const int64_t n = sizes[t];
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

// Two operators of this file alone, which are in no index.
extern const Op<
    "_recurrence(Tensor gates, Tensor h0, Tensor? c0, Tensor w_hh, Tensor? b_hh, int[] sizes, int cell, bool reverse, "
    "bool keep) -> (Tensor output, Tensor h, Tensor c, Tensor kept)">
    recurrence;
extern const Op<
    "_recurrence_backward(Tensor? grad, Tensor? grad_h, Tensor? grad_c, Tensor output, Tensor kept, Tensor h0, Tensor? "
    "c0, Tensor w_hh, bool need_weight, bool need_bias, int[] sizes, int cell, bool reverse) -> (Tensor, Tensor, "
    "Tensor, Tensor, Tensor)">
    recurrence_backward;

OP_DEFINE(recurrence){{
    .doc = R"(The steps of one recurrent layer in one direction.

gates: the input's part of the gates for the rows of all steps, (rows, gates * hidden), with all biases but ``b_hh``;
``sizes[t]`` rows are step t's. h0, c0: (batch, hidden). Results: the states of all steps, the last states, and with
``keep`` what the gradient needs, as bytes.)",
    .infer =
        [](const Tensor& gates, const Tensor& h0, const Tensor& c0, const Tensor& w_hh, const Tensor& b_hh, Ints sizes,
           int64_t cell, bool, bool keep) {
          const int64_t hidden = h0.size(-1), count = cpu::gate_count(Cell(cell)), batch = h0.size(0);
          int64_t rows = 0;
          for (const int64_t n : sizes) {
            check(n > 0 && n <= batch, "Expected batch sizes from 1 to ", batch, ", got ", n);
            rows += n;
          }
          check(h0.dim() == 2 && (!c0.defined() || Ints(c0.sizes()) == Ints(h0.sizes())), "Expected states of shape ",
                h0.sizes(), ", got ", c0.defined() ? Ints(c0.sizes()) : Ints());
          check(Ints(gates.sizes()) == Ints({rows, count * hidden}), "Expected gates of shape ",
                Dims{rows, count * hidden}, ", got ", gates.sizes());
          check(Ints(w_hh.sizes()) == Ints({count * hidden, hidden}), "Expected weight_hh of shape ",
                Dims{count * hidden, hidden}, ", got ", w_hh.sizes());
          check(!b_hh.defined() || b_hh.numel() == count * hidden, "Expected bias_hh of ", count * hidden, " elements");
          check(c0.defined() == (Cell(cell) == Cell::lstm), "c0 is for an LSTM, and for no other cell");
          const DType t = gates.dtype();
          return std::array<Meta, 4>{
              Meta{{rows, hidden}, t}, Meta{h0.sizes(), t}, Meta{c0.defined() ? c0.sizes() : Dims{0}, t},
              Meta{{keep ? rows : 0, cpu::kept_count(Cell(cell)) * hidden * size_of(t)}, kUInt8}};
        },
    .kernel = {[](Tensor& output, Tensor& h, Tensor& c, Tensor& kept, const Tensor& gates, const Tensor& h0,
                  const Tensor& c0, const Tensor& w_hh, const Tensor& b_hh, Ints sizes, int64_t cell, bool reverse,
                  bool keep) {
                 Tensor none;
                 in_place(copy, h, h0);
                 if (c0.defined()) in_place(copy, c, c0);
                 cpu::recurrence({Cell(cell), sizes, reverse}, contiguous(gates), contiguous(w_hh),
                                 b_hh.defined() ? contiguous(b_hh) : b_hh, output, h, c0.defined() ? c : none,
                                 keep ? kept : none);
               },
               nullptr},
    .saves = "gates, h0, c0, w_hh, b_hh, output, kept",
    .vjp =
        [](const Tensors& g, const Tensors& results, const Tensor& gates, const Tensor& h0, const Tensor& c0,
           const Tensor& w_hh, const Tensor& b_hh, Ints sizes, int64_t cell, bool reverse, bool) {
          if (grad_enabled())
            return gradients_again({gates, h0, c0, w_hh, b_hh}, {g[0], g[1], g[2]}, [&](Tensors x) {
              const auto [output, last] =
                  unroll(Cell(cell), x[0], sizes, {x[1], x[2]}, {{}, x[3], {}, x[4], {}}, reverse);
              return std::array{output, last.h, last.c};
            });
          const auto [dgates, dh, dc, dw, db] =
              recurrence_backward(g[0], g[1], g[2], results[0], results[3], h0, c0, w_hh, needs_grad(3), needs_grad(4),
                                  sizes, cell, reverse);
          return Grads{dgates, dh, dc, dw, db};
        },
}};

OP_DEFINE(recurrence_backward){{
    .doc = R"(The gradients of _recurrence: of gates, h0, c0, and where needed of w_hh and b_hh.)",
    .infer =
        [](const Tensor&, const Tensor&, const Tensor&, const Tensor& output, const Tensor&, const Tensor& h0,
           const Tensor& c0, const Tensor& w_hh, bool need_weight, bool need_bias, Ints, int64_t, bool) {
          const DType t = output.dtype();
          return std::array<Meta, 5>{Meta{{output.sizes()[0], w_hh.sizes()[0]}, t}, Meta{h0.sizes(), t},
                                     Meta{c0.defined() ? c0.sizes() : Dims{0}, t},
                                     Meta{need_weight ? w_hh.sizes() : Dims{0}, t},
                                     Meta{{need_bias ? w_hh.sizes()[0] : 0}, t}};
        },
    .kernel = {[](Tensor& dgates, Tensor& dh, Tensor& dc, Tensor& dw, Tensor& db, const Tensor& g, const Tensor& g_h,
                  const Tensor& g_c, const Tensor& output, const Tensor& kept, const Tensor& h0, const Tensor& c0,
                  const Tensor& w_hh, bool need_weight, bool need_bias, Ints sizes, int64_t cell, bool reverse) {
                 const auto begin = [](Tensor& d, const Tensor& last) {
                   last.defined() ? in_place(copy, d, last) : in_place(fill, d, Tensor(0));
                 };
                 begin(dh, g_h);
                 if (c0.defined()) begin(dc, g_c);
                 Tensor none;
                 cpu::recurrence_backward({Cell(cell), sizes, reverse}, g.defined() ? contiguous(g) : g, output, kept,
                                          contiguous(h0), c0.defined() ? contiguous(c0) : c0, contiguous(w_hh), dgates,
                                          dh, c0.defined() ? dc : none, need_weight ? dw : none, need_bias ? db : none);
               },
               nullptr},
}};

/// One layer in one direction.
std::pair<Tensor, State> run_layer(Cell cell, const Sequence& x, const State& initial, const Weights& w,
                                   bool backwards) {
  const DType t = x.rows.dtype();
  const auto fits = [t](const Tensor& p) { return !p.defined() || (p.dtype() == t && p.device().is_cpu()); };
  const bool fused = (t == kFloat32 || t == kFloat64) && x.rows.sizes()[0] > 0 && !w.w_hr.defined() &&
                     fits(initial.h) && fits(initial.c) && fits(w.w_ih) && fits(w.w_hh) && fits(w.b_ih) &&
                     fits(w.b_hh) && fits(x.rows);
  if (!fused) return unroll(cell, linear(x.rows, w.w_ih, w.b_ih), x.sizes, initial, w, backwards);
  // Only a GRU's new gate tells one bias from the other.
  const bool one_bias = cell != Cell::gru && w.b_ih.defined();
  const Tensor gates = linear(x.rows, w.w_ih, one_bias ? w.b_ih + w.b_hh : w.b_ih);
  bool keep = false;
  for (const Tensor* p : {&gates, &initial.h, &initial.c, &w.w_hh, &w.b_hh})
    keep |= grad_enabled() && p->defined() && p->requires_grad();
  auto [output, h, c, kept] = recurrence(gates, initial.h, initial.c, w.w_hh, one_bias ? Tensor() : w.b_hh, x.sizes,
                                         int64_t(cell), backwards, keep);
  return {output, {h, initial.c.defined() ? c : Tensor()}};
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
