// Losses of pairs and of classes, the multi-label hinge loss, and connectionist temporal classification. Sums do not
// depend on the number of threads.
#include "kernels/cpu/losses.h"

#include "kernels/cuda/kernels.h"

#include <cmath>
#include <limits>

#include "kernels/cpu/class_losses.h"
#include "kernels/cpu/pair_losses.h"
#include "kernels/cpu/pointwise.h"
#include "kernels/formulas.h"
#include "kernels/math.h"
#include "rushlight/parallel.h"

namespace rush::cpu {

namespace {

Tensor dense(const Tensor& x, DType dtype, Ints sizes) {
  if (x.is_contiguous() && x.dtype() == dtype && Ints(x.sizes()) == sizes) return x;
  Tensor out = allocate({sizes, dtype, {}, {}});
  copy(out, x);
  return out;
}
Tensor dense(const Tensor& x) { return dense(x, x.dtype(), x.sizes()); }

/// How a contiguous input divides: (batch, classes, inner).
struct Shape {
  int64_t batch, classes, inner;
  explicit Shape(const Tensor& input) {
    const bool vector = input.dim() == 1;
    batch = vector ? 1 : input.sizes()[0];
    classes = input.sizes()[vector ? 0 : 1];
    inner = 1;
    for (int64_t d = 2; d < input.dim(); ++d) inner *= input.sizes()[d];
  }
};

/// Targets as int64, all checked, so that loops need not.
Tensor classes_of(const Tensor& target, int64_t classes, int64_t ignore_index) {
  const Tensor t = dense(target, kInt64, target.sizes());
  const int64_t* data = t.data<int64_t>();
  for (int64_t i = 0; i < t.numel(); ++i)
    check<IndexError>((data[i] >= 0 && data[i] < classes) || data[i] == ignore_index, "Target ", data[i],
                      " is out of bounds.");
  return t;
}

}  // namespace

void pair_loss(Tensor& out, const Tensor& a, const Tensor& b, PairLoss kind, double width, bool reduce, double scale) {
  if (!out.is_cpu()) return cuda::pair_loss(out, a, b, kind, width, reduce, scale);
  const Dims sizes = reduce ? broadcast(a.sizes(), b.sizes()) : out.sizes();
  const Tensor x = dense(a, out.dtype(), sizes), t = dense(b, out.dtype(), sizes);
  check(pair_losses(kind, width, out.dtype(), out.data_ptr(), x.data_ptr(), t.data_ptr(), x.numel(), reduce, scale),
        "all elements of input should be between 0 and 1");
}

void pick_class(Tensor& out, const Tensor& input, const Tensor& target, int64_t ignore_index) {
  if (!out.is_cpu()) return cuda::pick_class(out, input, target, ignore_index);
  const Shape s(input);
  const Tensor classes = classes_of(target, s.classes, ignore_index), x = dense(input);
  const int64_t* at = classes.data<int64_t>();
  for_floating_or_complex(x.dtype(), [&]<class T>() {
    const T* from = x.data<T>();
    T* to = out.data<T>();
    for (int64_t i = 0; i < s.batch * s.inner; ++i)
      to[i] = at[i] == ignore_index ? T(0) : from[(i / s.inner * s.classes + at[i]) * s.inner + i % s.inner];
  });
}

void put_class(Tensor& out, const Tensor& input, const Tensor& target, int64_t ignore_index) {
  if (!out.is_cpu()) return cuda::put_class(out, input, target, ignore_index);
  const Shape s(out);
  const Tensor classes = classes_of(target, s.classes, ignore_index), x = dense(input);
  const int64_t* at = classes.data<int64_t>();
  fill(out, Scalar(0));
  for_floating_or_complex(x.dtype(), [&]<class T>() {
    const T* from = x.data<T>();
    T* to = out.data<T>();
    for (int64_t i = 0; i < s.batch * s.inner; ++i)
      if (at[i] != ignore_index) to[(i / s.inner * s.classes + at[i]) * s.inner + i % s.inner] = from[i];
  });
}

void class_losses(Tensor& losses, Tensor& log_sum, const Tensor& input, const Tensor& target, int64_t ignore_index) {
  if (!losses.is_cpu()) return cuda::class_losses(losses, log_sum, input, target, ignore_index);
  const Shape s(input);
  const Tensor classes = classes_of(target, s.classes, ignore_index), x = dense(input);
  class_losses({x.dtype(), s.batch, s.classes, s.inner, ignore_index, classes.data<int64_t>(), x.data_ptr(),
                losses.data_ptr(), log_sum.data_ptr()});
}

void class_losses_backward(Tensor& out, const Tensor& grad, const Tensor& grad_log_sum, const Tensor& input,
                           const Tensor& target, const Tensor& log_sum, int64_t ignore_index) {
  if (!out.is_cpu()) return cuda::class_losses_backward(out, grad, grad_log_sum, input, target, log_sum, ignore_index);
  const Shape s(input);
  const Tensor classes = classes_of(target, s.classes, ignore_index), x = dense(input);
  const Tensor g = dense(grad, out.dtype(), target.sizes()), h = dense(grad_log_sum, out.dtype(), target.sizes());
  const Tensor logs = dense(log_sum, out.dtype(), target.sizes());
  class_losses_backward({x.dtype(), s.batch, s.classes, s.inner, ignore_index, classes.data<int64_t>(), x.data_ptr(),
                         nullptr, logs.data_ptr(), g.data_ptr(), h.data_ptr(), out.data_ptr()});
}

void label_margins(Tensor& losses, Tensor& slopes, const Tensor& input, const Tensor& target) {
  if (!losses.is_cpu()) return cuda::label_margins(losses, slopes, input, target);
  const int64_t n = input.dim() == 0 ? 1 : input.sizes().back(), rows = n ? input.numel() / n : 0;
  const Tensor x = dense(input), labels = dense(target, kInt64, target.sizes());
  for (int64_t i = 0; i < labels.numel(); ++i)
    check<ValueError>(labels.data<int64_t>()[i] >= -1 && labels.data<int64_t>()[i] < n, "target ",
                      labels.data<int64_t>()[i], " is out of range [-1, ", n, ")");
  for_floating(x.dtype(), [&]<class T>() {
    using W = compute_t<T>;
    std::vector<char> chosen(static_cast<size_t>(n));
    std::vector<W> slope(static_cast<size_t>(n));
    for (int64_t r = 0; r < rows; ++r) {
      const T* row = x.data<T>() + r * n;
      const int64_t* list = labels.data<int64_t>() + r * n;
      const int64_t count = std::find(list, list + n, -1) - list;
      std::fill(chosen.begin(), chosen.end(), 0);
      std::fill(slope.begin(), slope.end(), W(0));
      for (int64_t k = 0; k < count; ++k) chosen[size_t(list[k])] = 1;
      W sum = 0;
      for (int64_t k = 0; k < count; ++k) {
        for (int64_t c = 0; c < n; ++c) {
          const W z = 1 - W(row[list[k]]) + W(row[c]);
          if (chosen[size_t(c)] || z <= 0) continue;
          sum += z;
          slope[size_t(c)] += 1 / W(n);
          slope[size_t(list[k])] -= 1 / W(n);
        }
      }
      losses.data<T>()[r] = T(sum / W(n));
      for (int64_t c = 0; c < n; ++c) slopes.data<T>()[r * n + c] = T(slope[size_t(c)]);
    }
  });
}

// ---- connectionist temporal classification: Graves et al. 2006, section 4.1, in logarithms

namespace {

template <class T>
T log_add(T a, T b) {
  const T high = std::max(a, b);
  return high == -std::numeric_limits<T>::infinity() ? high : high + std::log1p(std::exp(-std::abs(a - b)));
}

/// One sequence: its log probabilities, and its target with blanks around and between the labels.
template <class T>
struct Alignment {
  const T* probs;
  int64_t step, time, states, blank;
  const int64_t* labels;
  static constexpr T none = -std::numeric_limits<T>::infinity();

  int64_t label(int64_t s) const { return s % 2 ? labels[s / 2] : blank; }
  T prob(int64_t t, int64_t s) const { return probs[t * step + label(s)]; }
  bool may_skip(int64_t s) const { return s >= 2 && s % 2 && label(s) != label(s - 2); }

  /// alpha[t][s]: log probability of all ways to be in state s at time t.
  std::vector<T> forward() const {
    std::vector<T> alpha(size_t(time * states), none);
    if (time == 0) return alpha;
    for (int64_t s = 0; s < std::min<int64_t>(2, states); ++s) alpha[size_t(s)] = prob(0, s);
    for (int64_t t = 1; t < time; ++t) {
      const T* before = &alpha[size_t((t - 1) * states)];
      for (int64_t s = 0; s < states; ++s) {
        T sum = before[s];
        if (s >= 1) sum = log_add(sum, before[s - 1]);
        if (may_skip(s)) sum = log_add(sum, before[s - 2]);
        alpha[size_t(t * states + s)] = sum + prob(t, s);
      }
    }
    return alpha;
  }
  /// beta[t][s]: log probability of all ways from state s at time t to the end, that of being in s included.
  std::vector<T> backward() const {
    std::vector<T> beta(size_t(time * states), none);
    if (time == 0) return beta;
    for (int64_t s = std::max<int64_t>(0, states - 2); s < states; ++s)
      beta[size_t((time - 1) * states + s)] = prob(time - 1, s);
    for (int64_t t = time - 1; t-- > 0;) {
      const T* after = &beta[size_t((t + 1) * states)];
      for (int64_t s = 0; s < states; ++s) {
        T sum = after[s];
        if (s + 1 < states) sum = log_add(sum, after[s + 1]);
        if (s + 2 < states && may_skip(s + 2)) sum = log_add(sum, after[s + 2]);
        beta[size_t(t * states + s)] = sum + prob(t, s);
      }
    }
    return beta;
  }
  T loss(const std::vector<T>& alpha) const {
    if (time == 0) return states == 1 ? T(0) : -none;
    const T* last = &alpha[size_t((time - 1) * states)];
    return -(states == 1 ? last[0] : log_add(last[states - 1], last[states - 2]));
  }
};

/// Calls f(n, alignment) for each sequence of the batch.
template <class T, class F>
void each_alignment(const Tensor& log_probs, const Tensor& targets, Ints input_lengths, Ints target_lengths,
                    int64_t blank, F&& f) {
  const int64_t batch = log_probs.sizes()[1], classes = log_probs.sizes()[2];
  const int64_t* labels = targets.data<int64_t>();
  std::vector<int64_t> first(static_cast<size_t>(batch));
  for (int64_t n = 0, at = 0; n < batch; ++n) {
    first[size_t(n)] = targets.dim() == 2 ? n * targets.sizes()[1] : at;
    at += target_lengths[n];
  }
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t k = 0; k < target_lengths[n]; ++k) {
      const int64_t label = labels[first[size_t(n)] + k];
      check<IndexError>(label >= 0 && label < classes, "Target ", label, " is out of bounds.");
    }
  parallel_for(0, batch, 1, [&](int64_t lo, int64_t hi) {
    for (int64_t n = lo; n < hi; ++n)
      f(n, Alignment<T>{log_probs.data<T>() + n * classes, batch * classes, input_lengths[n], 2 * target_lengths[n] + 1,
                        blank, labels + first[size_t(n)]});
  });
}

template <class F>
void for_float_or_double(DType t, F&& f) {
  if (t == kFloat32) return f.template operator()<float>();
  if (t == kFloat64) return f.template operator()<double>();
  raise<NotImplementedError>("not implemented for '", scalar_name(t), "': needs float32 or float64");
}

}  // namespace

void ctc_losses(Tensor& out, const Tensor& log_probs, const Tensor& targets, Ints input_lengths, Ints target_lengths,
                int64_t blank) {
  if (!out.is_cpu()) return cuda::ctc_losses(out, log_probs, targets, input_lengths, target_lengths, blank);
  const Tensor probs = dense(log_probs), labels = dense(targets, kInt64, targets.sizes());
  for_float_or_double(probs.dtype(), [&]<class T>() {
    each_alignment<T>(probs, labels, input_lengths, target_lengths, blank,
                      [&](int64_t n, const Alignment<T>& a) { out.data<T>()[n] = a.loss(a.forward()); });
  });
}

void ctc_losses_backward(Tensor& out, const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                         Ints input_lengths, Ints target_lengths, int64_t blank) {
  if (!out.is_cpu())
    return cuda::ctc_losses_backward(out, grad, log_probs, targets, input_lengths, target_lengths, blank);
  const Tensor probs = dense(log_probs), labels = dense(targets, kInt64, targets.sizes());
  const Tensor g = dense(grad, out.dtype(), grad.sizes());
  const int64_t batch = probs.sizes()[1], classes = probs.sizes()[2];
  fill(out, Scalar(0));
  for_float_or_double(probs.dtype(), [&]<class T>() {
    each_alignment<T>(probs, labels, input_lengths, target_lengths, blank, [&](int64_t n, const Alignment<T>& a) {
      const std::vector<T> alpha = a.forward(), beta = a.backward();
      const T loss = a.loss(alpha), scale = g.data<T>()[n];
      if (scale == 0) return;  // an infinite loss that was set to 0 has no gradient
      std::vector<T> through(static_cast<size_t>(classes));
      for (int64_t t = 0; t < a.time; ++t) {
        std::fill(through.begin(), through.end(), Alignment<T>::none);
        for (int64_t s = 0; s < a.states; ++s) {
          T& sum = through[size_t(a.label(s))];
          sum = log_add(sum, alpha[size_t(t * a.states + s)] + beta[size_t(t * a.states + s)]);
        }
        T* row = out.data<T>() + (t * batch + n) * classes;
        const T* log_prob = a.probs + t * a.step;
        for (int64_t c = 0; c < classes; ++c)
          row[c] = scale * (std::exp(log_prob[c]) - std::exp(through[size_t(c)] + loss - log_prob[c]));
      }
    });
  });
}

}  // namespace rush::cpu
