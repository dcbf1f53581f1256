// Fast Fourier transforms. A complex number here is a vector of them: the engine, Stockham, is the textbook's loop and
// transforms as many lines side by side as a vector has lanes. All else is how lines come into the lanes:
//
//   several lines     one in each lane, which for lines that are neighbours in memory takes plain loads (Lanes)
//   one long line     as a matrix of n1 x n2, whose columns and then rows are lines side by side (Split)
//   any other length  as a convolution of a length that has small factors (Bluestein)
//   real lines        as complex ones of half the length, two elements a number (fold)
//
// Sources: Van Loan 1992, Computational Frameworks for the Fast Fourier Transform, 1.7 (Stockham), 3.3.1 (four steps),
// 4.2.3 (Bluestein), 4.3 (real lines). Roots of unity are exact to the last place, so errors grow as sqrt(log n).
#include "kernels/cpu/fft.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/cpu/integers.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cuda/kernels.h"
#include "rushlight/allocator.h"
#include "rushlight/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/fft.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#ifndef RUSH_FFT_CPP
#define RUSH_FFT_CPP
namespace rush::cpu {
namespace {

constexpr int64_t kLargestRadix = 61;              // from here on Bluestein's convolution is faster than sums
constexpr int64_t kWork = 32768;                   // elements that are worth a thread
constexpr int64_t kCacheBytes = 1 << 20;           // of L2, for lines side by side
constexpr int64_t kPlanBytes = int64_t(32) << 20;  // of tables that are kept for the next call

constexpr int64_t kReal = -1;  // for `gap`: there are no imaginary parts

/// A line in memory: elements `step` apart, imaginary parts `gap` behind real ones. What is loaded or stored is
/// multiplied by the factors of its parts; -1 for the imaginary one conjugates.
template <class T>
struct Line {
  T* data;
  int64_t step, gap;
  T re = 1, im = 1;

  Line from(int64_t element, int64_t stride = 1) const { return {data + element * step, stride * step, gap, re, im}; }
  std::complex<T> load(int64_t i) const {
    const T* p = data + i * step;
    return {re * p[0], gap != kReal ? im * p[gap] : T(0)};
  }
  void store(int64_t i, std::complex<T> z) const {
    T* p = data + i * step;
    p[0] = re * z.real();
    if (gap != kReal) p[gap] = im * z.imag();
  }
};

enum class Kind { complex, from_real, to_real };

/// All lines of a tensor: those at the offsets in_strides and out_strides span, over `sizes`.
template <class T>
struct Job {
  Kind kind;
  int64_t n;
  Line<T> in, out;
  int64_t count = 1;
  bool two_sided = false;  // from_real: out has all n elements
  Dims sizes{}, in_strides{}, out_strides{};
};

template <class T>
std::complex<T> times(std::complex<T> a, std::complex<T> b) {  // without the operator's care for infinities
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

/// e^(-2 pi i k / n): the angle is brought into the first eighth of the circle while it is an integer.
std::complex<double> root(int64_t k, int64_t n) {
  int64_t t = 8 * (k % n);  // of 8n
  const bool below = t > 4 * n;
  if (below) t = 8 * n - t;
  const bool left = t > 2 * n;
  if (left) t = 4 * n - t;
  const bool steep = t > n;
  if (steep) t = 2 * n - t;
  const double angle = 0.785398163397448309616 * (double(t) / double(n));
  double c = std::cos(angle), s = std::sin(angle);
  if (steep) std::swap(c, s);
  return {left ? -c : c, below ? s : -s};
}
template <class T>
void append_root(std::vector<T>& table, int64_t k, int64_t n) {
  const std::complex<double> w = root(k, n);
  table.push_back(T(w.real()));
  table.push_back(T(w.imag()));
}

bool has_small_factors(int64_t n) {
  for (int64_t p = 2; p <= kLargestRadix; ++p)
    while (n % p == 0) n /= p;
  return n == 1;
}

/// The plan of this kind for length n. Plans are tables: those last used are kept.
template <class Plan>
std::shared_ptr<const Plan> cached(int64_t n) {
  static std::mutex mutex;
  static std::vector<std::shared_ptr<const Plan>> plans;  // the last used first
  const auto known = [&] {
    const auto at = std::find_if(plans.begin(), plans.end(), [&](const auto& p) { return p->n == n; });
    if (at != plans.end()) std::rotate(plans.begin(), at, at + 1);
    return at != plans.end();
  };
  {
    const std::lock_guard lock(mutex);
    if (known()) return plans.front();
  }
  auto plan = std::make_shared<const Plan>(n);
  const std::lock_guard lock(mutex);
  if (!known()) plans.insert(plans.begin(), plan);
  int64_t bytes = 0;
  size_t keep = 0;
  while (keep < plans.size() && ((bytes += plans[keep]->bytes() + 256) <= kPlanBytes || keep == 0)) ++keep;
  plans.resize(keep);
  return plan;
}

/// Memory of a call.
template <class T>
class Room {
 public:
  explicit Room(int64_t n) : bytes_(size_t(n) * sizeof(T)), data_(static_cast<T*>(cpu_allocate(bytes_))) {}
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  ~Room() { cpu_free(data_, bytes_); }
  T* data() const { return data_; }
  /// As a line of complex numbers.
  Line<T> line() const { return {data_, 2, 1}; }

 private:
  size_t bytes_;
  T* data_;
};

int64_t grain_of(int64_t work) { return std::max<int64_t>(kWork / std::max<int64_t>(work, 1), 1); }

}  // namespace
}  // namespace rush::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace rush::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
using Vec = hn::Vec<Tag<T>>;
template <class T>
constexpr int64_t kLanes = HWY_LANES(T);
template <class T>
constexpr int64_t kRow = 2 * kLanes<T>;  // a complex number in memory: a vector of real parts, then of imaginary ones

/// A complex number for each lane.
template <class T>
struct Complex {
  Vec<T> re, im;
};
template <class T>
HWY_INLINE Complex<T> load(const T* row) {
  return {hn::Load(Tag<T>(), row), hn::Load(Tag<T>(), row + kLanes<T>)};
}
template <class T>
HWY_INLINE void store(Complex<T> a, T* row) {
  hn::Store(a.re, Tag<T>(), row);
  hn::Store(a.im, Tag<T>(), row + kLanes<T>);
}
/// The same number for all lanes.
template <class T>
HWY_INLINE Complex<T> spread(const T* number) {
  return {hn::Set(Tag<T>(), number[0]), hn::Set(Tag<T>(), number[1])};
}
template <class T>
HWY_INLINE Complex<T> operator+(Complex<T> a, Complex<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
HWY_INLINE Complex<T> operator-(Complex<T> a, Complex<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
HWY_INLINE Complex<T> operator*(Complex<T> a, Complex<T> b) {
  return {hn::NegMulAdd(a.im, b.im, a.re * b.re), hn::MulAdd(a.re, b.im, a.im * b.re)};
}
template <class T>
HWY_INLINE Complex<T> minus_i(Complex<T> a) {
  return {a.im, hn::Neg(a.re)};
}

// ---- the transforms of length R that longer ones consist of

template <int R>
struct Butterfly;
template <>
struct Butterfly<2> {
  template <class T>
  static HWY_INLINE void run(Complex<T>* a) {
    const Complex<T> b = a[0] - a[1];
    a[0] = a[0] + a[1];
    a[1] = b;
  }
};
template <>
struct Butterfly<4> {
  template <class T>
  static HWY_INLINE void run(Complex<T>* a) {
    const Complex<T> even = a[0] + a[2], odd = a[1] + a[3], p = a[0] - a[2], q = minus_i(a[1] - a[3]);
    a[0] = even + odd;
    a[1] = p + q;
    a[2] = even - odd;
    a[3] = p - q;
  }
};
template <>
struct Butterfly<8> {
  template <class T>
  static HWY_INLINE void run(Complex<T>* a) {
    Complex<T> even[4] = {a[0], a[2], a[4], a[6]}, odd[4] = {a[1], a[3], a[5], a[7]};
    Butterfly<4>::run(even);
    Butterfly<4>::run(odd);
    const auto half = hn::Set(Tag<T>(), T(0.70710678118654752440));
    odd[1] = {half * (odd[1].re + odd[1].im), half * (odd[1].im - odd[1].re)};
    odd[2] = minus_i(odd[2]);
    odd[3] = {half * (odd[3].im - odd[3].re), hn::Neg(half * (odd[3].re + odd[3].im))};
    for (int k = 0; k < 4; ++k) {
      a[k] = even[k] + odd[k];
      a[k + 4] = even[k] - odd[k];
    }
  }
};

/// For odd r: terms j and r - j share their cosines, and their sines up to the sign. roots: e^(-2 pi i k / r).
template <int R, class T>
HWY_INLINE void odd_butterfly(Complex<T>* a, int radix, const T* roots) {
  const int r = R ? R : radix, half = (r - 1) / 2;
  constexpr int kRoom = R ? R : kLargestRadix + 1;
  Complex<T> sum[kRoom / 2 + 1], difference[kRoom / 2 + 1], first = a[0];
  for (int j = 1; j <= half; ++j) {
    sum[j] = a[j] + a[r - j];
    difference[j] = minus_i(a[j] - a[r - j]);
    first = first + sum[j];
  }
  for (int k = 1; k <= half; ++k) {
    Complex<T> u = a[0], v{hn::Zero(Tag<T>()), hn::Zero(Tag<T>())};
    for (int j = 1, jk = k; j <= half; ++j, jk = jk + k < r ? jk + k : jk + k - r) {
      const Complex<T> w = spread(roots + 2 * jk);
      u = {hn::MulAdd(w.re, sum[j].re, u.re), hn::MulAdd(w.re, sum[j].im, u.im)};
      v = {hn::NegMulAdd(w.im, difference[j].re, v.re), hn::NegMulAdd(w.im, difference[j].im, v.im)};
    }
    a[k] = u + v;
    a[r - k] = u - v;
  }
  a[0] = first;
}

// ---- lines side by side

/// x, of `parts` interleaved lines that are transformed already, goes to y with parts * R: each line of R * rest
/// elements becomes R of `rest` by butterflies over elements that lie `rest` apart, turned by w^(pk). See Van Loan 1.7.
template <int R, class T>
HWY_NOINLINE void stockham_step(const T* HWY_RESTRICT x, T* HWY_RESTRICT y, int64_t parts, int radix, int64_t rest,
                                const T* HWY_RESTRICT turns, const T* HWY_RESTRICT roots) {
  const int r = R ? R : radix;
  constexpr int kRoom = R ? R : kLargestRadix + 1;
  for (int64_t p = 0; p < rest; ++p, turns += 2 * (r - 1))
    for (int64_t q = 0; q < parts; ++q) {
      Complex<T> a[kRoom];
      for (int j = 0; j < r; ++j) a[j] = load(x + kRow<T> * (q + parts * (p + rest * j)));
      if constexpr (R == 2 || R == 4 || R == 8)
        Butterfly<R>::run(a);
      else
        odd_butterfly<R>(a, r, roots);
      T* to = y + kRow<T> * (q + parts * r * p);
      store(a[0], to);
      for (int k = 1; k < r; ++k) store(p ? a[k] * spread(turns + 2 * (k - 1)) : a[k], to + kRow<T> * parts * k);
    }
}

/// The engine: transforms kLanes lines of n elements, element i of all of them in row i.
template <class T>
struct Stockham {
  struct Step {
    int radix;
    int64_t rest;
    std::vector<T> turns, roots;
  };
  int64_t n;
  std::vector<Step> steps;

  explicit Stockham(int64_t length) : n(length) {
    for (int64_t rest = n; rest > 1;) {
      int radix = rest % 8 == 0 && rest != 16 ? 8 : rest % 4 == 0 ? 4 : 2;
      while (rest % radix != 0) ++radix;
      Step step{radix, rest / radix, {}, {}};
      for (int64_t p = 0; p < step.rest; ++p)
        for (int k = 1; k < radix; ++k) append_root(step.turns, p * k, rest);
      if (radix % 2)
        for (int k = 0; k < radix; ++k) append_root(step.roots, k, radix);
      rest = step.rest;
      steps.push_back(std::move(step));
    }
  }
  int64_t bytes() const { return 2 * n * int64_t(sizeof(T)); }

  /// Transforms the rows x and returns where they are then: x or y.
  T* run(T* x, T* y) const {
    int64_t parts = 1;
    for (const Step& s : steps) {
      const auto step = s.radix == 8   ? stockham_step<8, T>
                        : s.radix == 4 ? stockham_step<4, T>
                        : s.radix == 2 ? stockham_step<2, T>
                        : s.radix == 3 ? stockham_step<3, T>
                        : s.radix == 5 ? stockham_step<5, T>
                                       : stockham_step<0, T>;
      step(x, y, parts, s.radix, s.rest, s.turns.data(), s.roots.data());
      parts *= s.radix;
      std::swap(x, y);
    }
    return x;
  }
};

/// Rows become columns: each round takes the even lanes of all rows, then the odd ones, which rotates the bits of
/// (row, lane) by one.
template <class T>
HWY_INLINE void transpose(Vec<T>* rows) {
  constexpr int N = int(kLanes<T>);
  const Tag<T> d;
  for (int round = 1; round < N; round *= 2) {
    Vec<T> next[N];
    for (int i = 0; i < N / 2; ++i) {
      next[i] = hn::ConcatEven(d, rows[2 * i + 1], rows[2 * i]);
      next[i + N / 2] = hn::ConcatOdd(d, rows[2 * i + 1], rows[2 * i]);
    }
    for (int i = 0; i < N; ++i) rows[i] = next[i];
  }
}

/// The lines that begin at line.data + at[lane], for `count` lanes.
template <class T>
struct Lanes {
  Line<T> line;
  int64_t count;
  int64_t at[kLanes<T>];

  /// Whether they are neighbours, so that one vector (two where real and imaginary parts alternate) is an element of
  /// each, and whether each is contiguous.
  bool neighbours() const {
    const int64_t unit = line.gap == 1 ? 2 : 1;
    for (int64_t l = 0; l < kLanes<T>; ++l)
      if (l >= count || at[l] != at[0] + l * unit) return false;
    return true;
  }
  bool contiguous() const { return count == kLanes<T> && line.gap == 1 && line.step == 2; }

  HWY_INLINE Complex<T> load_pairs(const T* p) const {
    const Tag<T> d;
    Complex<T> a;
    hn::LoadInterleaved2(d, p, a.re, a.im);
    return {a.re * hn::Set(d, line.re), a.im * hn::Set(d, line.im)};
  }
  HWY_INLINE void store_pairs(Complex<T> a, T* p) const {
    const Tag<T> d;
    hn::StoreInterleaved2(a.re * hn::Set(d, line.re), a.im * hn::Set(d, line.im), d, p);
  }

  void load(int64_t n, T* rows) const {
    constexpr int64_t N = kLanes<T>;
    const Tag<T> d;
    int64_t i = 0;
    if (neighbours()) {
      const auto re = hn::Set(d, line.re), im = hn::Set(d, line.im);
      for (const T* p = line.data + at[0]; i < n; ++i, p += line.step) {
        if (line.gap == 1)
          HWY_NAMESPACE::store(load_pairs(p), rows + i * kRow<T>);
        else
          HWY_NAMESPACE::store(
              Complex<T>{re * hn::LoadU(d, p), line.gap != kReal ? im * hn::LoadU(d, p + line.gap) : hn::Zero(d)},
              rows + i * kRow<T>);
      }
    } else if (contiguous()) {
      for (; i + N <= n; i += N) {
        Vec<T> re[N], im[N];
        for (int64_t l = 0; l < N; ++l) {
          const Complex<T> a = load_pairs(line.data + at[l] + 2 * i);
          re[l] = a.re;
          im[l] = a.im;
        }
        transpose<T>(re);
        transpose<T>(im);
        for (int64_t k = 0; k < N; ++k) HWY_NAMESPACE::store(Complex<T>{re[k], im[k]}, rows + (i + k) * kRow<T>);
      }
    }
    if (i < n && count < N) std::fill(rows + i * kRow<T>, rows + n * kRow<T>, T(0));
    for (; i < n; ++i)
      for (int64_t l = 0; l < count; ++l) {
        const std::complex<T> a = line_of(l).load(i);
        rows[i * kRow<T> + l] = a.real();
        rows[i * kRow<T> + N + l] = a.imag();
      }
  }

  void store(int64_t n, const T* rows) const {
    constexpr int64_t N = kLanes<T>;
    const Tag<T> d;
    int64_t i = 0;
    if (neighbours()) {
      const auto re = hn::Set(d, line.re), im = hn::Set(d, line.im);
      for (T* p = line.data + at[0]; i < n; ++i, p += line.step) {
        const Complex<T> a = HWY_NAMESPACE::load(rows + i * kRow<T>);
        if (line.gap == 1) {
          store_pairs(a, p);
        } else {
          hn::StoreU(re * a.re, d, p);
          if (line.gap != kReal) hn::StoreU(im * a.im, d, p + line.gap);
        }
      }
    } else if (contiguous()) {
      for (; i + N <= n; i += N) {
        Vec<T> re[N], im[N];
        for (int64_t k = 0; k < N; ++k) {
          const Complex<T> a = HWY_NAMESPACE::load(rows + (i + k) * kRow<T>);
          re[k] = a.re;
          im[k] = a.im;
        }
        transpose<T>(re);
        transpose<T>(im);
        for (int64_t l = 0; l < N; ++l) store_pairs(Complex<T>{re[l], im[l]}, line.data + at[l] + 2 * i);
      }
    }
    for (; i < n; ++i)
      for (int64_t l = 0; l < count; ++l) line_of(l).store(i, {rows[i * kRow<T> + l], rows[i * kRow<T> + N + l]});
  }

 private:
  Line<T> line_of(int64_t lane) const { return {line.data + at[lane], line.step, line.gap, line.re, line.im}; }
};

// ---- a line of its own

/// A line as a matrix of n1 rows and n2 columns: its columns are lines side by side, and so are, turned and transposed,
/// the rows. x[n2 j1 + j2] -> sum over j1 -> times w^(k1 j2) -> sum over j2 -> X[k1 + n1 k2].
template <class T>
struct Split {
  static constexpr int64_t N = kLanes<T>;
  int64_t n, n1, n2;
  std::shared_ptr<const Stockham<T>> columns, rows;
  std::vector<T> near, far;  // w^(k1 l) for the lanes l, and w^(k1 N c) for each c: the turn of column N c + l

  /// n1 for length n: the largest divisor up to its root, 0 where that would leave lanes empty.
  static int64_t divisor(int64_t n) {
    int64_t d = int64_t(std::sqrt(double(n)));
    while (d >= N && n % d != 0) --d;
    return d >= N ? d : 0;
  }

  explicit Split(int64_t length)
      : n(length), n1(divisor(n)), n2(n / n1), columns(cached<Stockham<T>>(n1)), rows(cached<Stockham<T>>(n2)) {
    for (int64_t k = 0; k < ceil_div(n1, N) * N; ++k) {
      std::vector<T> lanes;
      for (int64_t l = 0; l < N; ++l) append_root(lanes, k * l, n);
      for (int64_t part = 0; part < 2; ++part)
        for (int64_t l = 0; l < N; ++l) near.push_back(lanes[size_t(2 * l + part)]);
      for (int64_t c = 0; c < ceil_div(n2, N); ++c) append_root(far, k * N * c, n);
    }
  }
  int64_t bytes() const { return int64_t((near.size() + far.size()) * sizeof(T)); }

  void run(const Line<T>& from, const Line<T>& to) const {
    const int64_t across = ceil_div(n2, N), down = ceil_div(n1, N), height = across * N;
    const Room<T> between(down * height * kRow<T>);  // down x height rows: for each N of k1, all of j2
    parallel_for(0, across, grain_of(n1 * N), [&](int64_t lo, int64_t hi) HWY_ATTR {
      T* x = scratch<T>(Scratch::a, down * N * kRow<T>);
      T* y = scratch<T>(Scratch::b, down * N * kRow<T>);
      for (int64_t c = lo; c < hi; ++c) {
        side_by_side(from, c, n2).load(n1, x);
        const T* sums = columns->run(x, y);
        for (int64_t g = 0; g < down; ++g) {
          Vec<T> re[N], im[N];
          for (int64_t i = 0; i < N; ++i) {
            const int64_t k = g * N + i;
            Complex<T> turn{hn::LoadU(Tag<T>(), &near[size_t(k * kRow<T>)]),
                            hn::LoadU(Tag<T>(), &near[size_t(k * kRow<T> + N)])};
            if (c) turn = turn * spread(&far[size_t(2 * (k * across + c))]);
            const Complex<T> a = load(sums + k * kRow<T>) * turn;
            re[i] = a.re;
            im[i] = a.im;
          }
          transpose<T>(re);
          transpose<T>(im);
          T* tile = between.data() + (g * height + c * N) * kRow<T>;
          for (int64_t l = 0; l < N; ++l) store(Complex<T>{re[l], im[l]}, tile + l * kRow<T>);
        }
      }
    });
    parallel_for(0, down, grain_of(n2 * N), [&](int64_t lo, int64_t hi) HWY_ATTR {
      T* y = scratch<T>(Scratch::b, n2 * kRow<T>);
      for (int64_t g = lo; g < hi; ++g)
        side_by_side(to, g, n1).store(n2, rows->run(between.data() + g * height * kRow<T>, y));
    });
  }

 private:
  /// Columns N c, N c + 1, ... of the line as a matrix of this width.
  static Lanes<T> side_by_side(const Line<T>& line, int64_t c, int64_t width) {
    Lanes<T> lanes{line.from(c * N), std::min(N, width - c * N), {}};
    lanes.line.step = width * line.step;
    for (int64_t l = 0; l < lanes.count; ++l) lanes.at[l] = l * line.step;
    return lanes;
  }
};

template <class T>
struct Bluestein;

/// A line by itself, the way that suits its length.
template <class T>
struct Alone {
  std::shared_ptr<const Stockham<T>> plain;
  std::shared_ptr<const Split<T>> split;
  std::shared_ptr<const Bluestein<T>> convolution;

  explicit Alone(int64_t n) {
    if (!has_small_factors(n))
      convolution = cached<Bluestein<T>>(n);
    else if (Split<T>::divisor(n))
      split = cached<Split<T>>(n);
    else
      plain = cached<Stockham<T>>(n);
  }
  void run(const Line<T>& from, const Line<T>& to) const {
    if (convolution) return convolution->run(from, to);
    if (split) return split->run(from, to);
    T* x = scratch<T>(Scratch::a, plain->n * kRow<T>);
    T* y = scratch<T>(Scratch::b, plain->n * kRow<T>);
    Lanes<T>{from, 1, {}}.load(plain->n, x);
    Lanes<T>{to, 1, {}}.store(plain->n, plain->run(x, y));
  }
};

/// jk = (j^2 + k^2 - (k - j)^2) / 2 makes a transform of any length a convolution with the chirp c_j = w^(j^2 / 2), and
/// that is a product of transforms of any length m >= 2 n - 1.
template <class T>
struct Bluestein {
  int64_t n, m;
  Alone<T> padded;
  std::vector<T> chirp, spectrum;  // c_j, and the transform of the conjugate chirp over m

  static int64_t padded_length(int64_t n) {
    int64_t best = 1;
    while (best < 2 * n - 1) best *= 2;
    for (int64_t odd : {3, 5, 9, 15}) {
      int64_t m = odd;
      while (m < 2 * n - 1) m *= 2;
      best = std::min(best, m);
    }
    return best;
  }

  explicit Bluestein(int64_t length) : n(length), m(padded_length(n)), padded(m), spectrum(size_t(2 * m)) {
    for (int64_t j = 0, square = 0; j < n; ++j) {  // j^2 modulo 2n, where the chirp repeats
      append_root(chirp, square, 2 * n);
      square = (square + 2 * j + 1) % (2 * n);
    }
    const Line<T> line{spectrum.data(), 2, 1};
    for (int64_t j = 0; j < n; ++j)
      for (int64_t at : {j, (m - j) % m}) line.store(at, {chirp[size_t(2 * j)], -chirp[size_t(2 * j + 1)]});
    padded.run(line, {spectrum.data(), 2, 1, T(1) / T(m), T(1) / T(m)});
  }
  int64_t bytes() const { return 2 * (n + m) * int64_t(sizeof(T)); }

  void run(const Line<T>& from, const Line<T>& to) const {
    const auto at = [](const std::vector<T>& table, int64_t i) {
      return std::complex<T>(table[size_t(2 * i)], table[size_t(2 * i + 1)]);
    };
    const Room<T> room(2 * m);
    const Line<T> line = room.line();
    Line<T> conjugate = line;
    conjugate.im = -1;
    for (int64_t j = 0; j < n; ++j) line.store(j, times(from.load(j), at(chirp, j)));
    std::fill(room.data() + 2 * n, room.data() + 2 * m, T(0));
    padded.run(line, line);
    for (int64_t k = 0; k < m; ++k) conjugate.store(k, times(line.load(k), at(spectrum, k)));
    padded.run(line, conjugate);  // backwards, between two conjugations
    for (int64_t k = 0; k < n; ++k) to.store(k, times(line.load(k), at(chirp, k)));
  }
};

// ---- real lines

/// -i e^(-2 pi i k / n) for k up to n / 4: what fold() turns by, for real lines of n elements.
template <class T>
struct Turns {
  int64_t n;
  std::vector<T> table;
  explicit Turns(int64_t length) : n(length) {
    for (int64_t k = 0; k <= n / 4; ++k) {
      const std::complex<double> w = root(k, n);
      table.push_back(T(w.imag()));
      table.push_back(T(-w.real()));
    }
  }
  int64_t bytes() const { return int64_t(table.size() * sizeof(T)); }
};

/// Between the transform Z of z_j = x_2j + i x_2j+1 (h elements, Z_h = Z_0) and that of the n = 2h real x, as they are
/// at k and h - k: with s = a + conj b and t = turn (a - conj b), X_k = (s + t) / 2 and X_h-k = conj(s - t) / 2. The
/// way back is the same with -turn. The half is left to the caller.
template <class V>
HWY_INLINE void fold(V& ar, V& ai, V& br, V& bi, V wr, V wi) {
  const V sr = ar + br, si = ai - bi, dr = ar - br, di = ai + bi;
  const V tr = dr * wr - di * wi, ti = dr * wi + di * wr;
  ar = sr + tr;
  ai = si + ti;
  br = sr - tr;
  bi = ti - si;
}

/// fold() of the rows 0 to h.
template <class T>
void fold_rows(T* rows, int64_t h, const std::vector<T>& turns, T sign) {
  for (int64_t k = 0; k <= h / 2; ++k) {
    const T turn[2] = {sign * turns[size_t(2 * k)], sign * turns[size_t(2 * k + 1)]};
    Complex<T> a = load(rows + k * kRow<T>), b = load(rows + (h - k) * kRow<T>), w = spread(turn);
    fold(a.re, a.im, b.re, b.im, w.re, w.im);
    store(a, rows + k * kRow<T>);
    store(b, rows + (h - k) * kRow<T>);
  }
}

/// fold() of the elements 0 to h of a line; `to` may be the same memory. The sign is -1 on the way back, where the
/// first and last element have no imaginary part, given or not.
template <class T>
void fold_line(const Line<T>& from, const Line<T>& to, int64_t h, const std::vector<T>& turns, T sign) {
  const auto one = [&](int64_t k) {
    const std::complex<T> x = from.load(k), y = from.load(h - k);
    T a[2] = {x.real(), x.imag()}, b[2] = {y.real(), y.imag()};
    if (k == 0 && sign < 0) a[1] = b[1] = 0;
    fold(a[0], a[1], b[0], b[1], sign * turns[size_t(2 * k)], sign * turns[size_t(2 * k + 1)]);
    to.store(k, {a[0], a[1]});
    to.store(h - k, {b[0], b[1]});
  };
  one(0);
  int64_t k = 1;
  if (from.step == 2 && from.gap == 1 && to.step == 2) {
    constexpr int64_t N = kLanes<T>;
    const Tag<T> d;
    const auto re = hn::Set(d, to.re), im = hn::Set(d, to.im), mirror = hn::Set(d, from.im), s = hn::Set(d, sign);
    for (; 2 * (k + N - 1) < h; k += N) {
      const int64_t low = 2 * k, high = 2 * (h - k - N + 1);
      Complex<T> a, b, w;
      hn::LoadInterleaved2(d, from.data + low, a.re, a.im);
      hn::LoadInterleaved2(d, from.data + high, b.re, b.im);
      hn::LoadInterleaved2(d, &turns[size_t(2 * k)], w.re, w.im);
      a.im = mirror * a.im;
      b = {hn::Reverse(d, b.re), mirror * hn::Reverse(d, b.im)};
      fold(a.re, a.im, b.re, b.im, s * w.re, s * w.im);
      hn::StoreInterleaved2(re * a.re, im * a.im, d, to.data + low);
      hn::StoreInterleaved2(re * hn::Reverse(d, b.re), im * hn::Reverse(d, b.im), d, to.data + high);
    }
  }
  for (; k <= h / 2; ++k) one(k);
}

// ---- all lines of a tensor

template <class T>
class Transform {
  static constexpr int64_t N = kLanes<T>;

 public:
  explicit Transform(const Job<T>& job)
      : job_(job),
        packed_(job.kind != Kind::complex && job.n % 2 == 0),
        length_(packed_ ? job.n / 2 : job.n),
        half_(job.n / 2) {
    if (packed_) turns_ = cached<Turns<T>>(job.n);
  }

  void run() const {
    const bool side_by_side = job_.count >= N && !(contiguous() && Split<T>::divisor(length_)) &&
                              length_ * kRow<T> * int64_t(sizeof(T)) <= kCacheBytes / 2;
    if (has_small_factors(length_) && (side_by_side || !Split<T>::divisor(length_))) {
      const auto plan = cached<Stockham<T>>(length_);
      parallel_for(0, ceil_div(job_.count, N), grain_of(job_.n * N), [&](int64_t lo, int64_t hi) {
        for (int64_t b = lo; b < hi; ++b) block(*plan, b * N, std::min(N, job_.count - b * N));
      });
      return;
    }
    const Alone<T> plan(length_);
    const auto lines = [&](int64_t lo, int64_t hi) {
      for (int64_t i = lo; i < hi; ++i) line(plan, i);
    };
    if (job_.n >= kWork)
      lines(0, job_.count);  // each is enough for all threads
    else
      parallel_for(0, job_.count, grain_of(job_.n), lines);
  }

 private:
  bool contiguous() const {
    const int64_t in = job_.kind == Kind::from_real ? 1 : 2, out = job_.kind == Kind::to_real ? 1 : 2;
    return job_.in.step == in && job_.out.step == out;
  }
  /// A real line's elements as the complex ones that the plan takes: in pairs, or each by itself.
  Line<T> complex_line(Line<T> line, bool real) const {
    if (!real) return line;
    return packed_ ? Line<T>{line.data, 2 * line.step, line.step, line.re, line.im} : line;
  }
  void offsets(int64_t first, int64_t count, int64_t* in, int64_t* out) const {
    for (int64_t l = 0; l < count; ++l) {
      in[l] = out[l] = 0;
      int64_t linear = first + l;
      for (size_t d = job_.sizes.size(); d-- > 0; linear /= job_.sizes[d]) {
        in[l] += linear % job_.sizes[d] * job_.in_strides[d];
        out[l] += linear % job_.sizes[d] * job_.out_strides[d];
      }
    }
  }

  void block(const Stockham<T>& plan, int64_t first, int64_t count) const {
    Lanes<T> in{complex_line(job_.in, job_.kind == Kind::from_real), count, {}};
    Lanes<T> out{complex_line(job_.out, job_.kind == Kind::to_real), count, {}};
    offsets(first, count, in.at, out.at);
    T* x = scratch<T>(Scratch::a, (job_.n + 1) * kRow<T>);
    T* y = scratch<T>(Scratch::b, (job_.n + 1) * kRow<T>);
    const auto row = [](T* rows, int64_t k) { return rows + k * kRow<T>; };
    const auto mirror = [&](T* rows) HWY_ATTR {  // elements that follow from those up to n / 2
      for (int64_t k = half_ + 1; k < job_.n; ++k) {
        const Complex<T> a = load(row(rows, job_.n - k));
        store(Complex<T>{a.re, hn::Neg(a.im)}, row(rows, k));
      }
    };
    if (job_.kind == Kind::to_real) {
      in.load(half_ + 1, x);
      if (packed_) {
        std::fill_n(row(x, 0) + N, N, T(0));
        std::fill_n(row(x, half_) + N, N, T(0));
        fold_rows(x, half_, turns_->table, T(-1));
      } else {
        mirror(x);
      }
    } else {
      in.load(length_, x);
    }
    T* result = plan.run(x, y);
    if (job_.kind != Kind::from_real) return out.store(length_, result);
    if (packed_) {
      store(load(row(result, 0)), row(result, half_));
      fold_rows(result, half_, turns_->table, T(1));
    }
    if (two_sided()) mirror(result);
    out.store(two_sided() ? job_.n : half_ + 1, result);
  }

  void line(const Alone<T>& plan, int64_t index) const {
    int64_t in_at, out_at;
    offsets(index, 1, &in_at, &out_at);
    Line<T> in = complex_line(job_.in, job_.kind == Kind::from_real);
    Line<T> out = complex_line(job_.out, job_.kind == Kind::to_real);
    in.data += in_at;
    out.data += out_at;
    if (job_.kind == Kind::complex) return plan.run(in, out);
    const Room<T> room(2 * (job_.n + 1));
    const Line<T> line = room.line();
    if (job_.kind == Kind::to_real) {
      if (packed_) {
        fold_line(in, line, half_, turns_->table, T(-1));
      } else {
        for (int64_t k = 0; k <= half_; ++k) line.store(k, in.load(k));
        for (int64_t k = half_ + 1; k < job_.n; ++k) line.store(k, std::conj(line.load(job_.n - k)));
      }
      return plan.run(line, out);
    }
    const Line<T> plain{out.data, out.step, out.gap};
    if (packed_) {
      plan.run(in, plain);
      plain.store(half_, plain.load(0));
      fold_line(plain, out, half_, turns_->table, T(1));
    } else {
      plan.run(in, line);
      for (int64_t k = 0; k <= half_; ++k) out.store(k, line.load(k));
    }
    if (two_sided())
      for (int64_t k = half_ + 1; k < job_.n; ++k) plain.store(k, std::conj(plain.load(job_.n - k)));
  }

  bool two_sided() const { return job_.two_sided; }

  const Job<T>& job_;
  bool packed_;
  int64_t length_, half_;  // of the complex transforms; n / 2
  std::shared_ptr<const Turns<T>> turns_;
};

void run_float(const Job<float>& job) { Transform<float>(job).run(); }
void run_double(const Job<double>& job) { Transform<double>(job).run(); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace rush::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rush::cpu {
namespace {
HWY_EXPORT(run_float);
HWY_EXPORT(run_double);
void run(const Job<float>& job) { HWY_DYNAMIC_DISPATCH(run_float)(job); }
void run(const Job<double>& job) { HWY_DYNAMIC_DISPATCH(run_double)(job); }

template <class T>
void transform(Kind kind, Tensor& out, const Tensor& x, int64_t dim, double factor, bool forward) {
  if (out.numel() == 0) return;
  const auto line = [&](const Tensor& t) {
    const int64_t parts = t.is_complex() ? 2 : 1;
    return Line<T>{static_cast<T*>(const_cast<void*>(static_cast<const void*>(t.data_ptr()))), parts * t.strides()[dim],
                   t.is_complex() ? 1 : kReal};
  };
  Job<T> job{kind, kind == Kind::from_real ? x.sizes()[dim] : out.sizes()[dim], line(x), line(out)};
  job.two_sided = kind == Kind::from_real && out.sizes()[dim] == job.n && job.n > 2;
  const T sign = forward ? T(1) : T(-1), scale = T(factor);
  switch (kind) {
    case Kind::complex:  // backwards: conjugated before and after
      job.in.im = sign;
      job.out.re = scale;
      job.out.im = sign * scale;
      break;
    case Kind::from_real:
      job.out.re = job.n % 2 ? scale : scale / 2;
      job.out.im = sign * job.out.re;
      break;
    case Kind::to_real:
      job.in.im = sign;
      job.out.re = job.out.im = scale;
      break;
  }
  const int64_t in = x.is_complex() ? 2 : 1, to = out.is_complex() ? 2 : 1;
  Dims order;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (d != dim && x.sizes()[d] != 1) order.push_back(d);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return x.strides()[a] > x.strides()[b]; });
  for (int64_t d : order) {
    job.count *= x.sizes()[d];
    job.sizes.push_back(x.sizes()[d]);
    job.in_strides.push_back(in * x.strides()[d]);
    job.out_strides.push_back(to * out.strides()[d]);
  }
  run(job);
}

void transform_any(Kind kind, Tensor& out, const Tensor& x, int64_t dim, double factor, bool forward) {
  if (x.dtype() == kFloat32 || x.dtype() == kComplex64)
    transform<float>(kind, out, x, dim, factor, forward);
  else
    transform<double>(kind, out, x, dim, factor, forward);
}
}  // namespace

void fft_c2c(Tensor& out, const Tensor& x, int64_t dim, double factor, bool forward) {
  if (!out.is_cpu()) return cuda::fft_c2c(out, x, dim, factor, forward);
  transform_any(Kind::complex, out, x, dim, factor, forward);
}
void fft_r2c(Tensor& out, const Tensor& x, int64_t dim, double factor, bool forward) {
  if (!out.is_cpu()) return cuda::fft_r2c(out, x, dim, factor, forward);
  transform_any(Kind::from_real, out, x, dim, factor, forward);
}
void fft_c2r(Tensor& out, const Tensor& x, int64_t dim, double factor, bool forward) {
  if (!out.is_cpu()) return cuda::fft_c2r(out, x, dim, factor, forward);
  transform_any(Kind::to_real, out, x, dim, factor, forward);
}

}  // namespace rush::cpu
#endif
