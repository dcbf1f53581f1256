// What each optimizer makes of one element: of a parameter, its gradient and its state. Small functors for float and
// double, looped over by the CPU (kernels/cpu/optim.cpp) and by GPUs (kernels/cuda/optim.cuh).
//
// A rule is called as rule(p, g, s, k): it moves p and the states s by the gradient g; k are the numbers that differ
// between parameters, as they depend on how many steps each has made (src/optim/steps.cpp computes them). Options are
// kept in double, so that differences such as 1 - beta are rounded once.
#pragma once
#include "kernels/math.h"

namespace rush::steps {

inline constexpr int kMaxStates = 3, kMaxFactors = 3;
inline constexpr int64_t kLight = 16384, kHeavy = 4096;  // elements worth a thread; heavy: roots and quotients

/// What comes before every rule: the direction, and decay of the parameter itself or through the gradient.
struct Prepare {
  double sign = 1, kept = 1, weight_decay = 0;
  template <class T>
  RUSH_FN T operator()(T& p, T g) const {
    g *= T(sign);
    p *= T(kept);
    return weight_decay != 0 ? T(weight_decay) * p + g : g;
  }
};

/// The larger one; NaN if one is.
template <class T>
RUSH_FN T larger(T a, T b) {
  return a > b || a != a ? a : b;
}

template <bool kMomentum>
struct Sgd {
  static constexpr int kStates = kMomentum;
  static constexpr int64_t kGrain = kLight;
  double lr, momentum = 0;
  bool nesterov = false;
  template <class T>
  RUSH_FN void operator()(T& p, T g, T* s, const double* k) const {  // k: 1 - dampening
    if constexpr (kMomentum) {
      s[0] = T(momentum) * s[0] + T(k[0]) * g;
      g = nesterov ? T(momentum) * s[0] + g : s[0];
    }
    p -= T(lr) * g;
  }
};

template <bool kLargest>
struct Adam {
  static constexpr int kStates = 2 + kLargest;
  static constexpr int64_t kGrain = kHeavy;
  double beta1, beta2, eps;
  template <class T>
  RUSH_FN void operator()(T& p, T g, T* s, const double* k) const {  // k: step size, factor of the root
    s[0] += T(1 - beta1) * (g - s[0]);
    s[1] = T(beta2) * s[1] + T(1 - beta2) * g * g;
    if constexpr (kLargest) s[2] = larger(s[2], s[1]);
    p -= T(k[0]) * (s[0] / (formula::sqrt(s[kLargest ? 2 : 1]) * T(k[1]) + T(eps)));
  }
};

/// States: mean square, then the momentum's buffer, then the mean gradient.
template <bool kMomentum, bool kCentered>
struct RMSprop {
  static constexpr int kStates = 1 + kMomentum + kCentered;
  static constexpr int64_t kGrain = kHeavy;
  double lr, alpha, eps, momentum;
  template <class T>
  RUSH_FN void operator()(T& p, T g, T* s, const double*) const {
    s[0] = T(alpha) * s[0] + T(1 - alpha) * g * g;
    T variance = s[0];
    if constexpr (kCentered) {
      T& mean = s[1 + kMomentum];
      mean += T(1 - alpha) * (g - mean);
      variance -= mean * mean;
    }
    g /= formula::sqrt(variance) + T(eps);
    if constexpr (kMomentum) g = s[1] = T(momentum) * s[1] + g;
    p -= T(lr) * g;
  }
};

struct Adagrad {
  static constexpr int kStates = 1;
  static constexpr int64_t kGrain = kHeavy;
  double eps;
  template <class T>
  RUSH_FN void operator()(T& p, T g, T* s, const double* k) const {  // k: step size
    s[0] += g * g;
    p -= T(k[0]) * (g / (formula::sqrt(s[0]) + T(eps)));
  }
};

struct Adadelta {
  static constexpr int kStates = 2;
  static constexpr int64_t kGrain = kHeavy;
  double lr, rho, eps;
  template <class T>
  RUSH_FN void operator()(T& p, T g, T* s, const double*) const {
    s[0] = T(rho) * s[0] + T(1 - rho) * g * g;
    const T delta = formula::sqrt(s[1] + T(eps)) / formula::sqrt(s[0] + T(eps)) * g;
    s[1] = T(rho) * s[1] + T(1 - rho) * delta * delta;
    p -= T(lr) * delta;
  }
};

struct Adamax {
  static constexpr int kStates = 2;
  static constexpr int64_t kGrain = kHeavy;
  double beta1, beta2, eps;
  template <class T>
  RUSH_FN void operator()(T& p, T g, T* s, const double* k) const {  // k: step size
    s[0] += T(1 - beta1) * (g - s[0]);
    s[1] = larger(T(beta2) * s[1], formula::abs(g) + T(eps));
    p -= T(k[0]) * (s[0] / s[1]);
  }
};

struct NAdam {
  static constexpr int kStates = 2;
  static constexpr int64_t kGrain = kHeavy;
  double beta1, beta2, eps;
  template <class T>
  RUSH_FN void operator()(T& p, T g, T* s, const double* k) const {  // k: of the gradient, of its mean, of the root
    s[0] += T(1 - beta1) * (g - s[0]);
    s[1] = T(beta2) * s[1] + T(1 - beta2) * g * g;
    p -= (T(k[0]) * g + T(k[1]) * s[0]) / (formula::sqrt(s[1]) * T(k[2]) + T(eps));
  }
};

struct RAdam {
  static constexpr int kStates = 2;
  static constexpr int64_t kGrain = kHeavy;
  double beta1, beta2, eps;
  template <class T>
  RUSH_FN void operator()(T& p, T g, T* s, const double* k) const {  // k: step size, whether the variance counts yet
    s[0] += T(1 - beta1) * (g - s[0]);
    s[1] = T(beta2) * s[1] + T(1 - beta2) * g * g;
    p -= T(k[0]) * (s[0] / (k[1] != 0 ? formula::sqrt(s[1]) + T(eps) : T(1)));
  }
};

struct Asgd {
  static constexpr int kStates = 1;
  static constexpr int64_t kGrain = kLight;
  template <class T>
  RUSH_FN void operator()(T& p, T g, T* s, const double* k) const {  // k: what is kept, step size, weight in the mean
    p = T(k[0]) * p - T(k[1]) * g;
    s[0] = k[2] == 1 ? p : T(k[2]) * (p - s[0]) + s[0];
  }
};

struct Rprop {
  static constexpr int kStates = 2;
  static constexpr int64_t kGrain = kLight;
  double shrink, grow, least, most;
  template <class T>
  RUSH_FN void operator()(T& p, T g, T* s, const double*) const {  // states: previous gradient, step size
    const T agreement = g * s[0];
    T size = s[1] * (agreement > 0 ? T(grow) : agreement < 0 ? T(shrink) : T(1));
    size = size < T(least) ? T(least) : size > T(most) ? T(most) : size;
    s[1] = size;
    s[0] = g = agreement < 0 ? T(0) : g;
    p -= g > 0 ? size : g < 0 ? -size : T(0) * g;
  }
};

}  // namespace rush::steps
