// Connectionist temporal classification: a team for each sequence, whose threads take the states of one time together.
// kernels/cpu/losses.cpp says what alpha and beta are.
#pragma once
#include "kernels/cuda/failure.cuh"
#include "kernels/cuda/layout.cuh"

namespace rush::cuda {

template <class T>
RUSH_FN T log_add(T a, T b) {
  const T high = a > b ? a : b;
  return high == T(-formula::kInf) ? high : high + formula::log1p(formula::exp(-formula::abs(a - b)));
}

template <class T>
struct Alignments {
  const T* probs;                // (time, batch, classes)
  const int64_t *labels, *list;  // where each sequence's labels begin, its time, and the number of its labels
  T *alpha, *beta;               // (batch, time, states)
  int64_t time, batch, classes, states, blank;
  IndexCheck check;

  /// The sequence of the team.
  struct One {
    const Alignments& all;
    const int64_t* labels;
    const T* probs;
    T *alpha, *beta;
    int64_t time, states;
    RUSH_FN One(const Alignments& a, int64_t n)
        : all(a),
          labels(a.labels + a.list[3 * n]),
          probs(a.probs + n * a.classes),
          alpha(a.alpha + n * a.time * a.states),
          beta(a.beta + n * a.time * a.states),
          time(a.list[3 * n + 1]),
          states(2 * a.list[3 * n + 2] + 1) {}

    RUSH_FN int64_t label(int64_t s) const { return s % 2 ? labels[s / 2] : all.blank; }
    RUSH_FN const T* row(int64_t t) const { return probs + t * all.batch * all.classes; }
    RUSH_FN bool may_skip(int64_t s) const { return s >= 2 && s % 2 && label(s) != label(s - 2); }
    /// Whether all labels are classes; in all threads.
    RUSH_FN bool valid() const {
      int64_t bad = 0;
      share(states / 2, [&](int64_t k) { bad += !all.check(labels[k], all.classes, 2); });
      return combine(bad, [](int64_t a, int64_t b) { return a + b; }) == 0;
    }
    RUSH_FN void forward() const {
      for (int64_t t = 0; t < time; ++t) {
        const T* before = alpha + (t - 1) * states;
        share(states, [&](int64_t s) {
          T sum = t == 0 && s < 2 ? T(0) : T(-formula::kInf);
          if (t > 0) {
            sum = before[s];
            if (s >= 1) sum = log_add(sum, before[s - 1]);
            if (may_skip(s)) sum = log_add(sum, before[s - 2]);
          }
          alpha[t * states + s] = sum + row(t)[label(s)];
        });
        __syncthreads();
      }
    }
    RUSH_FN void backward() const {
      for (int64_t t = time; t-- > 0;) {
        const T* after = beta + (t + 1) * states;
        share(states, [&](int64_t s) {
          T sum = t + 1 == time && s >= states - 2 ? T(0) : T(-formula::kInf);
          if (t + 1 < time) {
            sum = after[s];
            if (s + 1 < states) sum = log_add(sum, after[s + 1]);
            if (s + 2 < states && may_skip(s + 2)) sum = log_add(sum, after[s + 2]);
          }
          beta[t * states + s] = sum + row(t)[label(s)];
        });
        __syncthreads();
      }
    }
    RUSH_FN T loss() const {
      if (time == 0) return states == 1 ? T(0) : T(formula::kInf);
      const T* last = alpha + (time - 1) * states;
      return -(states == 1 ? last[0] : log_add(last[states - 1], last[states - 2]));
    }
  };
};

template <class T>
struct CtcLosses {
  T* losses;
  Alignments<T> all;
  RUSH_FN void operator()(int64_t n) const {
    const typename Alignments<T>::One one(all, n);
    if (!one.valid()) return;
    one.forward();
    if (threadIdx.x == 0) losses[n] = one.loss();
  }
};

/// The gradient at log_probs, over zeros.
template <class T>
struct CtcGradient {
  T* out;
  const T* grad;
  Alignments<T> all;
  RUSH_FN void operator()(int64_t n) const {
    const typename Alignments<T>::One one(all, n);
    const T scale = grad[n];
    if (!one.valid() || scale == 0) return;  // an infinite loss that was set to 0 has no gradient
    one.forward();
    one.backward();
    const T loss = one.loss();
    share(one.time, [&](int64_t t) {
      T* to = out + (t * all.batch + n) * all.classes;  // first, the logarithm of what goes through each class
      for (int64_t c = 0; c < all.classes; ++c) to[c] = T(-formula::kInf);
      for (int64_t s = 0; s < one.states; ++s) {
        T& sum = to[one.label(s)];
        sum = log_add(sum, one.alpha[t * one.states + s] + one.beta[t * one.states + s]);
      }
      const T* log_prob = one.row(t);
      for (int64_t c = 0; c < all.classes; ++c)
        to[c] = scale * (formula::exp(log_prob[c]) - formula::exp(to[c] + loss - log_prob[c]));
    });
  }
};

}  // namespace rush::cuda
