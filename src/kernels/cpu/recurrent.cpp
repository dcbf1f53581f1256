// The steps of a recurrent layer. The weights are packed once, and each step is one parallel loop over blocks of hidden
// units: a task multiplies the whole state by its units' weights, which stay in its core's L2 from step to step,
// applies the gates where the product lies in L1, and copies its part of the new state for the next step. Backward a
// task first multiplies the gates' gradients of one step, then goes through the gates of its units at the step before.
#include "kernels/cpu/recurrent.h"

#include <memory>
#include <vector>

#include "kernels/cpu/gemm.h"
#include "kernels/math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/recurrent.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/gemm-inl.h"

#ifndef RUSH_RECURRENT_CPP
#define RUSH_RECURRENT_CPP
namespace rush::cpu {
namespace {
/// What the typed kernels take: raw memory, null where a tensor is not there.
struct Layer {
  Cell cell;
  int64_t steps, batch, hidden;
  const int64_t* sizes;
  bool reverse;
  const void *gates, *w, *b;    // forward
  const void *grad, *h0, *c0;   // backward
  void *output, *kept, *h, *c;  // backward: the states' gradients
  void *dgates, *dhidden;       // gradients of the input's and of the state's part of the gates, which may be the same
};

/// The steps in the order in which they are taken.
struct Step {
  int64_t first, rows;  // in the tensors that hold all steps
};
std::vector<Step> steps_of(const Layer& p) {
  std::vector<Step> steps(size_t(p.steps));
  int64_t row = 0;
  for (int64_t t = 0; t < p.steps; ++t) {
    steps[size_t(p.reverse ? p.steps - 1 - t : t)] = {row, p.sizes[t]};
    row += p.sizes[t];
  }
  return steps;
}
}  // namespace
}  // namespace rush::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rush::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace m = formula;

// Gates need absolute accuracy, which these give to 1e-7 in few operations.
RUSH_FN float gate(float x) {
  x = x < -87 ? -87 : (x > 87 ? 87 : x);
  const m::Exp2Parts e = m::exp2_rough(x * -float(m::kLog2E));
  return 1 / (1 + (e.power + e.power * e.m));
}
RUSH_FN float squash(float x) {
  const float a = m::abs(x);
  const m::Exp2Parts e = m::exp2_rough((a > 10 ? 10 : a) * float(2 * m::kLog2E));
  const float y = (e.power - 1) + e.power * e.m;
  return m::copysign(y / (y + 2), x);
}
RUSH_FN double gate(double x) { return 1 / (1 + m::exp(-x)); }
RUSH_FN double squash(double x) { return m::tanh(x); }

/// Units that a task goes through at a time: their gates' columns fill a wide tile.
template <class T>
constexpr int64_t units_at_once(int64_t gates) {
  return gates == 1 ? Cut<T>::wide().columns : kPanel<T>;
}

/// A row of one task's units, forward. `a` is the state's part of each gate, units_at_once apart; `x` the input's,
/// `hidden` apart, as are what is kept and the bias.
template <class T, Cell kCell>
void forward_row(int64_t hidden, int64_t units, const T* HWY_RESTRICT a, const T* HWY_RESTRICT x,
                 const T* HWY_RESTRICT bias, T* HWY_RESTRICT h, T* HWY_RESTRICT c, T* HWY_RESTRICT kept,
                 T* HWY_RESTRICT out) {
  constexpr int64_t P = units_at_once<T>(gate_count(kCell));
  if constexpr (kCell == Cell::lstm) {
#pragma GCC ivdep
    for (int64_t u = 0; u < units; ++u) {
      const T in = gate(a[u] + x[u]), forget = gate(a[P + u] + x[hidden + u]);
      const T fresh = squash(a[2 * P + u] + x[2 * hidden + u]), shown = gate(a[3 * P + u] + x[3 * hidden + u]);
      const T cell = forget * c[u] + in * fresh, state = shown * squash(cell);
      if (kept) {
        kept[u] = in;
        kept[hidden + u] = forget;
        kept[2 * hidden + u] = fresh;
        kept[3 * hidden + u] = shown;
        kept[4 * hidden + u] = cell;
      }
      c[u] = cell;
      h[u] = out[u] = state;
    }
  } else if constexpr (kCell == Cell::gru) {
#pragma GCC ivdep
    for (int64_t u = 0; u < units; ++u) {
      const T b0 = bias ? bias[u] : T(0), b1 = bias ? bias[hidden + u] : T(0), b2 = bias ? bias[2 * hidden + u] : T(0);
      const T reset = gate(a[u] + b0 + x[u]), update = gate(a[P + u] + b1 + x[hidden + u]);
      const T from_state = a[2 * P + u] + b2, fresh = squash(x[2 * hidden + u] + reset * from_state);
      if (kept) {
        kept[u] = reset;
        kept[hidden + u] = update;
        kept[2 * hidden + u] = fresh;
        kept[3 * hidden + u] = from_state;
      }
      h[u] = out[u] = fresh + update * (h[u] - fresh);
    }
  } else {
#pragma GCC ivdep
    for (int64_t u = 0; u < units; ++u) {
      const T sum = a[u] + x[u];
      h[u] = out[u] = kCell == Cell::tanh ? squash(sum) : (sum < 0 ? T(0) : sum);
    }
  }
}

template <class T, Cell kCell>
void forward(const Layer& p) {
  constexpr int64_t G = gate_count(kCell), U = units_at_once<T>(G), width = G * U;
  constexpr int64_t group = 4 * kWideRows;  // rows that are multiplied before they go through the gates, from L1
  const int64_t H = p.hidden, blocks = ceil_div(H, U);
  const T *w = static_cast<const T*>(p.w), *gates = static_cast<const T*>(p.gates), *bias = static_cast<const T*>(p.b);
  T *h = static_cast<T*>(p.h), *c = static_cast<T*>(p.c), *kept = static_cast<T*>(p.kept);
  T* out = static_cast<T*>(p.output);
  const std::vector<Step> steps = steps_of(p);
  const int64_t line = H + kLanes<T>;  // no power of two from one row of the state to the next
  const Tensor memory = allocate({{blocks * H * width + 2 * p.batch * line}, dtype_of<T>});
  T* const weights = memory.data<T>();
  T* const states = weights + blocks * H * width;
  parallel_for(0, blocks * G, std::max<int64_t>(1, (1 << 14) / (H * U)), [&](int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; ++i) {
      const int64_t unit = i / G * U, g = i % G;
      pack_panel<T, T>(w + (g * H + unit) * H, H, 1, std::min(U, H - unit), width, H,
                       weights + i / G * H * width + g * U);
    }
  });
  for (int64_t i = 0; i < steps[0].rows; ++i) std::copy_n(h + i * H, H, states + i * line);
  for (size_t s = 0; s < steps.size(); ++s) {
    const int64_t rows = steps[s].rows, next = s + 1 < steps.size() ? steps[s + 1].rows : 0;
    const T* const from = states + static_cast<int64_t>(s % 2) * p.batch * line;
    T* const to = states + static_cast<int64_t>(1 - s % 2) * p.batch * line;
    const int64_t grain = std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(rows * H * width / 4, 1));
    parallel_for(0, blocks, grain, [&](int64_t lo, int64_t hi) {
      HWY_ALIGN T sums[group * width];
      for (int64_t j = lo; j < hi; ++j) {
        const int64_t unit = j * U, units = std::min(U, H - unit);
        const StridedColumns<T, T> columns{{weights + j * H * width, width, 1}, true};
        for (int64_t first = 0; first < rows; first += group) {
          const int64_t count = std::min(group, rows - first);
          multiply<T, T>(count, width, H, {from + first * line, line, 1}, columns, StridedResult<T>{{sums, width, 1}},
                         T(1), T(0));
          for (int64_t r = 0; r < count; ++r) {
            const int64_t i = first + r, row = steps[s].first + i;
            forward_row<T, kCell>(H, units, sums + r * width, gates + row * G * H + unit, bias ? bias + unit : nullptr,
                                  h + i * H + unit, c ? c + i * H + unit : nullptr,
                                  kept ? kept + row * kept_count(kCell) * H + unit : nullptr, out + row * H + unit);
          }
        }
        for (int64_t i = 0; i < next; ++i) std::copy_n(h + i * H + unit, units, to + i * line + unit);
      }
    });
  }
}

/// A row of one task's units, backward: from the gradient dh of the state to those of the gates. dc is turned into the
/// gradient of the c before, and dh, for the GRU, into the part that reaches the state before past the gates.
template <class T, Cell kCell>
void backward_row(int64_t hidden, int64_t units, const T* HWY_RESTRICT grad, const T* HWY_RESTRICT out,
                  const T* HWY_RESTRICT kept, const T* HWY_RESTRICT before, T* HWY_RESTRICT dh, T* HWY_RESTRICT dc,
                  T* HWY_RESTRICT dx, T* HWY_RESTRICT dstate) {
  if constexpr (kCell == Cell::lstm) {
#pragma GCC ivdep
    for (int64_t u = 0; u < units; ++u) {
      const T g = dh[u] + (grad ? grad[u] : T(0));
      const T in = kept[u], forget = kept[hidden + u], fresh = kept[2 * hidden + u], shown = kept[3 * hidden + u];
      const T top = squash(kept[4 * hidden + u]);
      const T d = dc[u] + g * shown * (1 - top * top);
      dx[u] = d * fresh * in * (1 - in);
      dx[hidden + u] = d * before[u] * forget * (1 - forget);
      dx[2 * hidden + u] = d * in * (1 - fresh * fresh);
      dx[3 * hidden + u] = g * top * shown * (1 - shown);
      dc[u] = d * forget;
    }
  } else if constexpr (kCell == Cell::gru) {
#pragma GCC ivdep
    for (int64_t u = 0; u < units; ++u) {
      const T g = dh[u] + (grad ? grad[u] : T(0));
      const T reset = kept[u], update = kept[hidden + u], fresh = kept[2 * hidden + u];
      const T d = g * (1 - update) * (1 - fresh * fresh);
      const T dreset = d * kept[3 * hidden + u] * reset * (1 - reset);
      const T dupdate = g * (before[u] - fresh) * update * (1 - update);
      dx[u] = dstate[u] = dreset;
      dx[hidden + u] = dstate[hidden + u] = dupdate;
      dx[2 * hidden + u] = d;
      dstate[2 * hidden + u] = d * reset;
      dh[u] = g * update;
    }
  } else {
#pragma GCC ivdep
    for (int64_t u = 0; u < units; ++u) {
      const T g = dh[u] + (grad ? grad[u] : T(0));
      dx[u] = kCell == Cell::tanh ? g * (1 - out[u] * out[u]) : (out[u] > 0 ? g : T(0));
    }
  }
}

template <class T, Cell kCell>
void backward(const Layer& p) {
  constexpr int64_t G = gate_count(kCell), U = Cut<T>::wide().columns;
  const int64_t H = p.hidden, K = G * H, blocks = ceil_div(H, U);
  const T *w = static_cast<const T*>(p.w), *grad = static_cast<const T*>(p.grad),
          *out = static_cast<const T*>(p.output);
  const T *kept = static_cast<const T*>(p.kept), *h0 = static_cast<const T*>(p.h0), *c0 = static_cast<const T*>(p.c0);
  T *dh = static_cast<T*>(p.h), *dc = static_cast<T*>(p.c);
  T *dx = static_cast<T*>(p.dgates), *dstate = static_cast<T*>(p.dhidden);
  const std::vector<Step> steps = steps_of(p);
  const Tensor memory = allocate({{blocks * K * U}, dtype_of<T>});
  T* const weights = memory.data<T>();
  parallel_for(0, blocks, std::max<int64_t>(1, (1 << 14) / (K * U)), [&](int64_t lo, int64_t hi) {
    for (int64_t j = lo; j < hi; ++j)
      pack_panel<T, T>(w + j * U, 1, H, std::min(U, H - j * U), U, K, weights + j * K * U);
  });
  // Round s multiplies the gradients of step s, and goes through the gates of step s - 1; the first has no product.
  for (size_t s = steps.size() + 1; s-- > 0;) {
    const int64_t grain = std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(p.batch * K * U / 4, 1));
    parallel_for(0, blocks, grain, [&](int64_t lo, int64_t hi) {
      for (int64_t j = lo; j < hi; ++j) {
        const int64_t unit = j * U, units = std::min(U, H - unit);
        if (s < steps.size())
          multiply<T, T>(steps[s].rows, units, K, {dstate + steps[s].first * K, K, 1},
                         StridedColumns<T, T>{{weights + j * K * U, U, 1}, true}, StridedResult<T>{{dh + unit, H, 1}},
                         T(1), T(kCell == Cell::gru));
        if (s == 0) continue;
        const Step& now = steps[s - 1];
        for (int64_t i = 0; i < now.rows; ++i) {
          const int64_t row = now.first + i;
          const bool inside = s > 1 && i < steps[s - 2].rows;
          const int64_t previous = inside ? steps[s - 2].first + i : i;
          const T* before = nullptr;
          if (kCell == Cell::lstm) before = (inside ? kept + previous * 5 * H + 4 * H : c0 + i * H) + unit;
          if (kCell == Cell::gru) before = (inside ? out + previous * H : h0 + i * H) + unit;
          backward_row<T, kCell>(H, units, grad ? grad + row * H + unit : nullptr, out + row * H + unit,
                                 kept + row * kept_count(kCell) * H + unit, before, dh + i * H + unit,
                                 dc ? dc + i * H + unit : nullptr, dx + row * K + unit, dstate + row * K + unit);
        }
      }
    });
  }
}

template <class T>
void run_typed(const Layer& p, bool back) {
  const auto run = [&]<Cell kCell>() { back ? backward<T, kCell>(p) : forward<T, kCell>(p); };
  switch (p.cell) {
    case Cell::lstm:
      return run.template operator()<Cell::lstm>();
    case Cell::gru:
      return run.template operator()<Cell::gru>();
    case Cell::tanh:
      return run.template operator()<Cell::tanh>();
    case Cell::relu:
      return run.template operator()<Cell::relu>();
  }
}

void run_layer(DType t, const Layer& p, bool back) {
  t == kFloat32 ? run_typed<float>(p, back) : run_typed<double>(p, back);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rush::cpu {
HWY_EXPORT(run_layer);

namespace {
void* at(const Tensor& t) { return t.defined() ? t.data_ptr() : nullptr; }

Layer layer_of(const Recurrence& r, const Tensor& h, const Tensor& w_hh) {
  Layer p{};
  p.cell = r.cell;
  p.steps = int64_t(r.sizes.size());
  p.batch = h.sizes()[0];
  p.hidden = h.sizes()[1];
  p.sizes = r.sizes.data();
  p.reverse = r.reverse;
  p.w = w_hh.data_ptr();
  return p;
}

/// The state from which each row's step was taken: the output of the step before, or the first state.
template <class T>
void states_before(const Layer& p, const T* output, const T* h0, T* to) {
  const std::vector<Step> steps = steps_of(p);
  parallel_for(0, p.steps, std::max<int64_t>(1, (1 << 15) / (p.batch * p.hidden)), [&](int64_t lo, int64_t hi) {
    for (int64_t s = lo; s < hi; ++s) {
      const int64_t rows = steps[size_t(s)].rows, inside = s ? std::min(rows, steps[size_t(s - 1)].rows) : 0;
      T* at = to + steps[size_t(s)].first * p.hidden;
      if (inside) std::copy_n(output + steps[size_t(s - 1)].first * p.hidden, inside * p.hidden, at);
      std::copy(h0 + inside * p.hidden, h0 + rows * p.hidden, at + inside * p.hidden);
    }
  });
}
}  // namespace

void recurrence(const Recurrence& r, const Tensor& gates, const Tensor& w_hh, const Tensor& b_hh, Tensor& output,
                Tensor& h, Tensor& c, Tensor& kept) {
  Layer p = layer_of(r, h, w_hh);
  if (h.numel() == 0) return;
  p.gates = gates.data_ptr();
  p.b = at(b_hh);
  p.output = output.data_ptr();
  p.kept = at(kept);
  p.h = h.data_ptr();
  p.c = at(c);
  HWY_DYNAMIC_DISPATCH(run_layer)(output.dtype(), p, false);
}

void recurrence_backward(const Recurrence& r, const Tensor& grad, const Tensor& output, const Tensor& kept,
                         const Tensor& h0, const Tensor& c0, const Tensor& w_hh, Tensor& dgates, Tensor& dh, Tensor& dc,
                         Tensor& dw_hh, Tensor& db_hh) {
  Layer p = layer_of(r, h0, w_hh);
  const int64_t rows = output.sizes()[0], K = gate_count(r.cell) * p.hidden;
  const DType t = output.dtype();
  const Tensor dstate = r.cell == Cell::gru ? allocate({dgates.sizes(), t}) : dgates;
  if (h0.numel() > 0) {
    p.grad = at(grad);
    p.output = output.data_ptr();
    p.kept = at(kept);
    p.h0 = h0.data_ptr();
    p.c0 = at(c0);
    p.h = dh.data_ptr();
    p.c = at(dc);
    p.dgates = dgates.data_ptr();
    p.dhidden = dstate.data_ptr();
    HWY_DYNAMIC_DISPATCH(run_layer)(t, p, true);
  }
  for_floating(t, [&]<class T>() {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      const T* d = dstate.data<T>();
      if (dw_hh.defined()) {
        const Tensor before = allocate({{rows, p.hidden}, t});
        states_before(p, output.data<T>(), h0.data<T>(), before.data<T>());
        gemm<T>(K, p.hidden, rows, {d, 1, K}, {before.data<T>(), p.hidden, 1}, {dw_hh.data<T>(), p.hidden, 1});
      }
      if (db_hh.defined()) {
        std::vector<double> sums(size_t(K), 0.0);
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t k = 0; k < K; ++k) sums[size_t(k)] += double(d[i * K + k]);
        std::copy(sums.begin(), sums.end(), db_hh.data<T>());
      }
    }
  });
}

}  // namespace rush::cpu
#endif
