// Fourier transforms in PyTorch's forms: what they take is brought to a size and a dtype, then three operators
// (_fft_c2c, _fft_r2c, _fft_c2r) do all of them. stft and istft are transforms of overlapping windows.
#include "kernels/cpu/fft.h"

#include <cmath>

#include "ops/common.h"

namespace rush {

namespace {

constexpr bool kForward = true, kBackward = false;

/// The input in a dtype that transforms compute with.
Tensor numbers_of(const Tensor& x) {
  const DType dtype = to_floating(x.dtype());
  check<NotImplementedError>(!is_half(dtype), "Unsupported dtype ", scalar_name(dtype));
  return x.dtype() == dtype ? x : cast(x, dtype);
}
Tensor complex_numbers(const Tensor& x) {
  const Tensor numbers = numbers_of(x);
  return numbers.is_complex() ? numbers : cast(numbers, complex_of(numbers.dtype()));
}
void need_real(const Tensor& x) {
  check<TypeError>(!x.is_complex(), "expects a real input tensor, but got ", scalar_name(x.dtype()));
}
int64_t points(int64_t n) {
  check(n >= 1, "Invalid number of data points (", n, ") specified");
  return n;
}

/// What a transform of n elements is multiplied by.
double factor(OptStr norm, int64_t n, bool forward) {
  const std::string_view mode = norm.value_or("backward");
  if (mode == "ortho") return 1 / std::sqrt(double(n));
  check(mode == "forward" || mode == "backward", "Invalid normalization mode: \"", mode, "\"");
  return (mode == "forward") == forward ? 1 / double(n) : 1;
}

/// Cut off or padded with zeros to n elements along dim.
Tensor resized(const Tensor& x, int64_t dim, int64_t n) {
  const int64_t old = x.sizes()[dim];
  if (n <= old) return n == old ? x : narrow(x, dim, 0, n);
  Dims border(size_t(2 * (x.dim() - dim)));
  border[border.size() - 1] = n - old;
  return constant_pad_nd(x, border);
}
int64_t only_dim(const Tensor& x, int64_t dim) {
  check<IndexError>(x.dim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  return wrap_dim(dim, x.dim());
}

Tensor complex_line(const Tensor& x, OptInt n, int64_t dim, OptStr norm, bool forward) {
  const Tensor numbers = numbers_of(x);
  const int64_t d = only_dim(x, dim), size = points(n.value_or(x.sizes()[d]));
  const Tensor line = resized(numbers, d, size);
  const double f = factor(norm, size, forward);
  return line.is_complex() ? fft_c2c(line, {d}, f, forward) : fft_r2c(line, d, f, forward, false);
}
Tensor real_line(const Tensor& x, OptInt n, int64_t dim, OptStr norm, bool forward) {
  need_real(x);
  const Tensor numbers = numbers_of(x);
  const int64_t d = only_dim(x, dim), size = points(n.value_or(x.sizes()[d]));
  return fft_r2c(resized(numbers, d, size), d, factor(norm, size, forward), forward, true);
}
Tensor mirrored_line(const Tensor& x, OptInt n, int64_t dim, OptStr norm, bool forward) {
  const Tensor numbers = complex_numbers(x);
  const int64_t d = only_dim(x, dim), size = points(n.value_or(2 * (x.sizes()[d] - 1)));
  return fft_c2r(resized(numbers, d, size / 2 + 1), d, size, factor(norm, size, forward), forward);
}

/// Dimensions, and how many elements of each take part.
struct Region {
  Dims dims, sizes;
  int64_t count() const {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    return n;
  }
  Ints all_but_last() const { return Ints(dims.data(), dims.size() - 1); }
};
Region region(const Tensor& x, OptInts s, OptInts dim) {
  Region r;
  if (dim) {
    for (int64_t d : *dim) r.dims.push_back(only_dim(x, d));
    for (size_t i = 0; i < r.dims.size(); ++i)
      check(std::find(r.dims.begin(), r.dims.begin() + i, r.dims[i]) == r.dims.begin() + i, "FFT dims must be unique");
    check(!s || s->size() == dim->size(), "When given, dim and shape arguments must have the same length");
  } else {
    const int64_t n = s ? int64_t(s->size()) : x.dim();
    check(n <= x.dim(), "Got shape with ", n, " values but input tensor only has ", x.dim(), " dimensions.");
    for (int64_t d = x.dim() - n; d < x.dim(); ++d) r.dims.push_back(d);
  }
  for (size_t i = 0; i < r.dims.size(); ++i)
    r.sizes.push_back(points(s && (*s)[i] != -1 ? (*s)[i] : x.sizes()[r.dims[i]]));
  return r;
}
Tensor resized(Tensor x, const Region& r) {
  for (size_t i = 0; i < r.dims.size(); ++i) x = resized(x, r.dims[i], r.sizes[i]);
  return x;
}
void need_dims(const Region& r) { check(!r.dims.empty(), "must transform at least one axis"); }

Tensor complex_region(const Tensor& x, OptInts s, OptInts dim, OptStr norm, bool forward) {
  const Tensor numbers = complex_numbers(x);
  const Region r = region(x, s, dim);
  if (r.dims.empty()) return clone(numbers);
  return fft_c2c(resized(numbers, r), r.dims, factor(norm, r.count(), forward), forward);
}
Tensor real_region(const Tensor& x, OptInts s, OptInts dim, OptStr norm, bool forward) {
  need_real(x);
  const Tensor numbers = numbers_of(x);
  const Region r = region(x, s, dim);
  need_dims(r);
  const Tensor last = fft_r2c(resized(numbers, r), r.dims.back(), factor(norm, r.count(), forward), forward, true);
  return r.dims.size() == 1 ? last : fft_c2c(last, r.all_but_last(), 1, forward);
}
Tensor mirrored_region(const Tensor& x, OptInts s, OptInts dim, OptStr norm, bool forward) {
  const Tensor numbers = complex_numbers(x);
  Region r = region(x, s, dim);
  need_dims(r);
  int64_t& last = r.sizes[r.sizes.size() - 1];
  const int64_t n = points(s && s->back() != -1 ? last : 2 * (last - 1));
  last = n;
  const double f = factor(norm, r.count(), forward);
  last = n / 2 + 1;
  Tensor part = resized(numbers, r);
  if (r.dims.size() > 1) part = fft_c2c(part, r.all_but_last(), 1, forward);
  return fft_c2r(part, r.dims.back(), n, f, forward);
}

template <auto kTransform, bool forward>
constexpr auto along_line =
    [](const Tensor& x, OptInt n, int64_t dim, OptStr norm) { return kTransform(x, n, dim, norm, forward); };
template <auto kTransform, bool forward>
constexpr auto over_plane =
    [](const Tensor& x, OptInts s, Ints dim, OptStr norm) { return kTransform(x, s, dim, norm, forward); };
template <auto kTransform, bool forward>
constexpr auto over_region =
    [](const Tensor& x, OptInts s, OptInts dim, OptStr norm) { return kTransform(x, s, dim, norm, forward); };

/// Of n // 2 + 1 elements along dim, those multiplied that stand for two of n.
Tensor weigh_pairs(const Tensor& x, int64_t dim, int64_t n, double weight) {
  const int64_t pairs = (n - 1) / 2, all = n / 2 + 1;
  if (pairs == 0) return x;
  return cat({narrow(x, dim, 0, 1), narrow(x, dim, 1, pairs) * weight, narrow(x, dim, 1 + pairs, all - 1 - pairs)},
             dim);
}

Tensor frequencies(int64_t first, int64_t last, int64_t n, double d, OptDType dtype, OptDevice device) {
  const DType type = dtype.value_or(default_dtype());
  check(n >= 0, "expected a number of samples, got ", n);
  check(!is_integral(type), "requires a floating point or complex dtype");
  return arange(Scalar(first), Scalar(last), Scalar(1), type, {}, device) * Scalar(1 / (double(n) * d));
}
Tensor shifted(const Tensor& x, OptInts dim, bool back) {
  const Dims dims = dim ? Dims(dim->begin(), dim->end()) : wrap_dims({}, x.dim(), true);
  Dims shifts;
  for (int64_t d : dims) shifts.push_back((x.sizes()[only_dim(x, d)] + back) / 2);
  return roll(x, shifts, dims);
}

/// A window, or ones, in the middle of n_fft elements.
Tensor centred_window(const Tensor& window, int64_t length, int64_t n_fft, DType dtype, Device device) {
  const int64_t left = (n_fft - length) / 2;
  const Tensor values = window.defined() ? window : ones({length}, dtype, {}, device);
  return length == n_fft ? values : constant_pad_nd(values, {left, n_fft - length - left});
}
void check_window(const Tensor& window, int64_t length, int64_t n_fft) {
  check(0 < length && length <= n_fft, "expected 0 < win_length <= n_fft, but got win_length=", length,
        " and n_fft=", n_fft);
  if (window.defined())
    check(window.dim() == 1 && window.sizes()[0] == length, "expected a 1D window of win_length=", length,
          " elements, but got one of shape ", window.sizes());
}
/// The sum of windows (batch, count, size) that begin `hop` apart: (batch, size + hop * (count - 1)).
Tensor overlap_add(const Tensor& windows, int64_t hop) {
  const int64_t count = windows.sizes()[1], size = windows.sizes()[2], total = size + hop * (count - 1);
  const Tensor places = unfold(arange(total, kInt64, {}, windows.device()), 0, size, hop);
  const Tensor sum = zeros({windows.sizes()[0], total}, windows.dtype(), {}, windows.device());
  return index_add(sum, 1, flatten(places), flatten(windows, 1));
}

}  // namespace

OP_DEFINE(fft_c2c){{
    .doc = R"(The discrete Fourier transform over ``dim``, backward unless ``forward``, times ``factor``.)",
    .infer =
        [](const Tensor& x, Ints dim, double, bool) {
          check(x.dim() > 0 && x.is_complex() && !wrap_dims(dim, x.dim()).empty(),
                "expected a complex tensor and at least one dimension");
          return Meta{x.sizes(), x.dtype()};
        },
    .kernel = {[](Tensor& out, const Tensor& x, Ints dim, double factor, bool forward) {
      for (size_t i = 0; i < dim.size(); ++i)
        cpu::fft_c2c(out, i ? out : x, wrap_dim(dim[i], x.dim()), i ? 1 : factor, forward);
    }},
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&, Ints dim, double factor,
              bool forward) { return Grads{fft_c2c(g, dim, factor, !forward)}; },
}};

OP_DEFINE(fft_r2c){{
    .doc = R"(The transform of real numbers over ``dim``; ``onesided`` leaves out elements that mirror others.)",
    .infer =
        [](const Tensor& x, int64_t dim, double, bool, bool onesided) {
          check(x.dim() > 0 && (x.dtype() == kFloat32 || x.dtype() == kFloat64),
                "expected float32 or float64 elements with a dimension, got ", scalar_name(x.dtype()), " of shape ",
                x.sizes());
          Dims sizes = x.sizes();
          int64_t& n = sizes[size_t(wrap_dim(dim, x.dim()))];
          points(n);
          if (onesided) n = n / 2 + 1;
          return Meta{sizes, complex_of(x.dtype())};
        },
    .kernel = {[](Tensor& out, const Tensor& x, int64_t dim, double factor, bool forward, bool) {
      cpu::fft_r2c(out, x, wrap_dim(dim, x.dim()), factor, forward);
    }},
    .saves = "input.shape",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& x, int64_t dim, double factor, bool forward, bool onesided) {
          if (!onesided) return Grads{real(fft_c2c(g, {dim}, factor, !forward))};
          const int64_t n = x.sizes()[wrap_dim(dim, x.dim())];
          return Grads{fft_c2r(weigh_pairs(g, dim, n, 0.5), dim, n, factor, !forward)};
        },
}};

OP_DEFINE(fft_c2r){{
    .doc = R"(The ``n`` real elements of the transform over ``dim`` of the first half of what mirrors itself.)",
    .infer =
        [](const Tensor& x, int64_t dim, int64_t n, double, bool) {
          check(x.dim() > 0 && x.is_complex(), "expected a complex tensor with a dimension, got shape ", x.sizes());
          Dims sizes = x.sizes();
          int64_t& size = sizes[size_t(wrap_dim(dim, x.dim()))];
          check(size == points(n) / 2 + 1, "expected ", n / 2 + 1, " elements for n=", n, ", got ", size);
          size = n;
          return Meta{sizes, real_of(x.dtype())};
        },
    .kernel = {[](Tensor& out, const Tensor& x, int64_t dim, int64_t, double factor, bool forward) {
      cpu::fft_c2r(out, x, wrap_dim(dim, x.dim()), factor, forward);
    }},
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&, int64_t dim, int64_t n, double factor,
              bool forward) { return Grads{weigh_pairs(fft_r2c(g, dim, factor, !forward, true), dim, n, 2)}; },
}};

OP_DEFINE(fft_fft){{
    .doc = R"(The discrete Fourier transform along a dimension, ``X_k = sum over j of x_j e^(-2 pi i jk / n)``.

The input is cut off or padded with zeros to ``n`` elements. ``norm``, here and in all of these: "backward", the
default, divides inverse transforms by n, "forward" the others, "ortho" both by its root.
Dtype: float32, float64 or complex, integers count as the default dtype; the result is complex.
Errors: NotImplementedError for half types, RuntimeError for n < 1, IndexError for a dimension that isn't there.)",
    .composite = along_line<complex_line, kForward>,
    .autocast = Autocast::fp32,
}};

OP_DEFINE(fft_ifft){{
    .doc = R"(The inverse of fft(): the sum with the other sign in the exponent, divided by n.)",
    .composite = along_line<complex_line, kBackward>,
    .autocast = Autocast::fp32,
}};

OP_DEFINE(fft_rfft){{
    .doc =
        R"(fft() of real numbers: the n // 2 + 1 first elements, which the others mirror.

Errors: TypeError for a complex input.)",
    .composite = along_line<real_line, kForward>,
    .autocast = Autocast::fp32,
}};

OP_DEFINE(fft_irfft){{
    .doc =
        R"(The inverse of rfft(): n real numbers from the n // 2 + 1 first elements. n is 2 * (size - 1) if not
given.)",
    .composite = along_line<mirrored_line, kBackward>,
    .autocast = Autocast::fp32,
}};

OP_DEFINE(fft_hfft){{
    .doc = R"(fft() of what mirrors itself, given by its n // 2 + 1 first elements: n real numbers. n as for irfft().)",
    .composite = along_line<mirrored_line, kForward>,
    .autocast = Autocast::fp32,
}};

OP_DEFINE(fft_ihfft){{
    .doc = R"(The inverse of hfft(): the n // 2 + 1 first elements of ifft() of real numbers.)",
    .composite = along_line<real_line, kBackward>,
    .autocast = Autocast::fp32,
}};

OP_DEFINE(fft_fft2){{
    .doc = R"(fft() over two dimensions, the last ones if not given; see fftn().)",
    .composite = over_plane<complex_region, kForward>,
    .autocast = Autocast::fp32,
}};

OP_DEFINE(fft_ifft2){{
    .doc = R"(The inverse of fft2().)",
    .composite = over_plane<complex_region, kBackward>,
    .autocast = Autocast::fp32,
}};

OP_DEFINE(fft_rfft2){{
    .doc = R"(fft2() of real numbers, with n // 2 + 1 elements along the last of its dimensions.)",
    .composite = over_plane<real_region, kForward>,
    .autocast = Autocast::fp32,
}};

OP_DEFINE(fft_irfft2){{
    .doc = R"(The inverse of rfft2(); the last size in ``s`` is that of the result.)",
    .composite = over_plane<mirrored_region, kBackward>,
    .autocast = Autocast::fp32,
}};

OP_DEFINE(fft_hfft2){{
    .doc = R"(hfft() along the last of two dimensions, fft() along the others.)",
    .composite = over_plane<mirrored_region, kForward>,
    .autocast = Autocast::fp32,
}};

OP_DEFINE(fft_ihfft2){{
    .doc = R"(The inverse of hfft2().)",
    .composite = over_plane<real_region, kBackward>,
    .autocast = Autocast::fp32,
}};

OP_DEFINE(fft_fftn){{
    .doc = R"(fft() along each of several dimensions: those of ``dim``, or as many last ones as ``s`` has sizes, or all.

Each is cut off or padded with zeros to its size in ``s``, where -1 stands for the size it has.
Errors: RuntimeError where dim repeats a dimension, or differs from s in length.)",
    .composite = over_region<complex_region, kForward>,
    .autocast = Autocast::fp32,
}};

OP_DEFINE(fft_ifftn){{
    .doc = R"(The inverse of fftn().)",
    .composite = over_region<complex_region, kBackward>,
    .autocast = Autocast::fp32,
}};

OP_DEFINE(fft_rfftn){{
    .doc = R"(fftn() of real numbers, with n // 2 + 1 elements along the last of its dimensions.)",
    .composite = over_region<real_region, kForward>,
    .autocast = Autocast::fp32,
}};

OP_DEFINE(fft_irfftn){{
    .doc = R"(The inverse of rfftn(); the last size in ``s`` is that of the result.)",
    .composite = over_region<mirrored_region, kBackward>,
    .autocast = Autocast::fp32,
}};

OP_DEFINE(fft_hfftn){{
    .doc = R"(hfft() along the last of several dimensions, fft() along the others.)",
    .composite = over_region<mirrored_region, kForward>,
    .autocast = Autocast::fp32,
}};

OP_DEFINE(fft_ihfftn){{
    .doc = R"(The inverse of hfftn().)",
    .composite = over_region<real_region, kBackward>,
    .autocast = Autocast::fp32,
}};

OP_DEFINE(fft_fftfreq){{
    .doc = R"(The frequencies of fft()'s n elements for samples ``d`` apart: 0, 1, ..., -2, -1 divided by n d.)",
    .composite =
        [](int64_t n, double d, OptDType dtype, OptLayout, OptDevice device, OptBool, bool requires_grad) {
          Tensor f = frequencies(-(n / 2), n - n / 2, n, d, dtype, device);
          if (n > 0) f = roll(f, n - n / 2, 0);
          return requires_grad ? f.requires_grad_() : f;
        },
}};

OP_DEFINE(fft_rfftfreq){{
    .doc = R"(The frequencies of rfft()'s elements for n samples ``d`` apart: 0, 1, ..., n // 2 divided by n d.)",
    .composite =
        [](int64_t n, double d, OptDType dtype, OptLayout, OptDevice device, OptBool, bool requires_grad) {
          Tensor f = frequencies(0, n / 2 + 1, n, d, dtype, device);
          return requires_grad ? f.requires_grad_() : f;
        },
}};

OP_DEFINE(fft_fftshift){{
    .doc = R"(Brings the element of frequency 0 to the middle, along ``dim`` or all dimensions.)",
    .composite = [](const Tensor& x, OptInts dim) { return shifted(x, dim, false); },
}};

OP_DEFINE(fft_ifftshift){{
    .doc = R"(The inverse of fftshift(): brings the element in the middle to the beginning.)",
    .composite = [](const Tensor& x, OptInts dim) { return shifted(x, dim, true); },
}};

OP_DEFINE(stft){{
    .doc = R"(The short-time Fourier transform: fft() of overlapping windows of a signal.

``center`` puts windows about their place in the signal, which is padded by n_fft // 2 as pad() does in ``pad_mode``.
``window`` (win_length elements, else ones) stands in the middle of n_fft; ``align_to_window`` lets it, and not the
n_fft elements around it, begin with the signal. ``hop_length`` is n_fft // 4 if not given, ``win_length`` n_fft.
``onesided`` keeps n_fft // 2 + 1 frequencies, the default for real numbers. ``normalized`` divides by the root of
n_fft.

Shape: self (L) or (B, L); the result ([B,] frequencies, windows), and 2 more where return_complex is False.
Errors: RuntimeError for sizes that don't fit, or where return_complex isn't given for real numbers.)",
    .composite =
        [](const Tensor& x, int64_t n_fft, OptInt hop_length, OptInt win_length, const Tensor& window, bool center,
           std::string_view pad_mode, bool normalized, OptBool onesided, OptBool return_complex,
           OptBool align_to_window) {
          const bool has_complex = x.is_complex() || (window.defined() && window.is_complex());
          check(!center || !align_to_window, "align_to_window should only be set when center = false");
          check(return_complex || has_complex, "requires the return_complex parameter be given for real inputs");
          check(x.dim() == 1 || x.dim() == 2, "expected a 1D or 2D tensor, got shape ", x.sizes());
          check<NotImplementedError>(!is_integral(x.dtype()) && !is_half(x.dtype()),
                                     "expected a tensor of floating point or complex values, got ",
                                     scalar_name(x.dtype()));
          const int64_t hop = hop_length.value_or(n_fft / 4), length = win_length.value_or(n_fft);
          Tensor signal = x.dim() == 2 ? x : unsqueeze(x, 0);
          if (center) signal = squeeze(pad(unsqueeze(signal, 0), {n_fft / 2, n_fft / 2}, pad_mode), Ints(0));
          check(0 < n_fft && n_fft <= signal.sizes()[1], "expected 0 < n_fft <= ", signal.sizes()[1],
                ", but got n_fft=", n_fft);
          check(hop > 0, "expected hop_length > 0, but got hop_length=", hop);
          check_window(window, length, n_fft);
          check(!onesided.value_or(false) || !has_complex, "Cannot have onesided output if window or input is complex");
          if (align_to_window.value_or(false)) {
            const int64_t left = (n_fft - length) / 2;
            signal = constant_pad_nd(signal, {left, n_fft - length - left});
          }
          Tensor windows = unfold(signal, 1, n_fft, hop);
          if (window.defined() || length < n_fft)
            windows = windows * centred_window(window, length, n_fft, x.dtype(), x.device());
          const std::string_view norm = normalized ? "ortho" : "backward";
          Tensor spectra =
              onesided.value_or(!has_complex) ? fft_rfft(windows, {}, -1, norm) : fft_fft(windows, {}, -1, norm);
          spectra = transpose(spectra, 1, 2);
          if (x.dim() == 1) spectra = squeeze(spectra, Ints(0));
          return return_complex.value_or(true) ? spectra : view_as_real(spectra);
        },
    .autocast = Autocast::fp32,
}};

OP_DEFINE(istft){{
    .doc = R"(The inverse of stft(): the signal whose short-time spectra are nearest to these (least squares).

Windows are transformed back, multiplied by the window again, added where they overlap, and divided by the sum of the
squared windows. ``length`` cuts the signal off, or adds zeros. The other arguments are those of stft().

Shape: self ([B,] frequencies, windows); the result ([B,] length), complex with return_complex.
Errors: TypeError for a real input, RuntimeError for sizes that don't fit and where no window covers a sample.)",
    .composite =
        [](const Tensor& x, int64_t n_fft, OptInt hop_length, OptInt win_length, const Tensor& window, bool center,
           bool normalized, OptBool onesided, OptInt length, bool return_complex) {
          const int64_t hop = hop_length.value_or(n_fft / 4), win = win_length.value_or(n_fft);
          check<TypeError>(x.is_complex(), "requires a complex-valued input as stft() gives it, got ",
                           scalar_name(x.dtype()));
          check(x.dim() == 2 || x.dim() == 3, "expected a tensor with 2 or 3 dimensions, got shape ", x.sizes());
          check(x.numel() > 0, "input tensor cannot be empty, got shape ", x.sizes());
          const Tensor spectra = transpose(x.dim() == 3 ? x : unsqueeze(x, 0), 1, 2);
          const bool half = onesided.value_or(spectra.sizes()[2] != n_fft);
          const int64_t frequencies = half ? n_fft / 2 + 1 : n_fft;
          check(spectra.sizes()[2] == frequencies, "expected ", frequencies, " frequencies for n_fft=", n_fft,
                half ? " (onesided)" : "", ", got ", spectra.sizes()[2]);
          check(0 < hop && hop <= win, "expected 0 < hop_length <= win_length, but got hop_length=", hop,
                " and win_length=", win);
          check_window(window, win, n_fft);
          check(!return_complex || !half, "Cannot have onesided output if window or input is complex");
          check(return_complex || !window.defined() || !window.is_complex(),
                "Complex windows are incompatible with return_complex=False");

          const Tensor weights = centred_window(window, win, n_fft, real_of(x.dtype()), x.device());
          const std::string_view norm = normalized ? "ortho" : "backward";
          const Tensor windows =  // a real signal needs only half of the frequencies, given or not
              return_complex ? fft_ifft(spectra, {}, -1, norm) : fft_irfft(spectra, n_fft, -1, norm);
          Tensor signal = overlap_add(windows * weights, hop);
          const Tensor squares = unsqueeze(expand(weights * weights, {spectra.sizes()[1], n_fft}), 0);
          const Tensor total = overlap_add(squares, hop);

          const int64_t all = signal.sizes()[1], start = center ? n_fft / 2 : 0;
          const int64_t end = length ? start + *length : center ? all - n_fft / 2 : all;
          const int64_t stop = std::min(end, all);
          check(start < stop, "expected at least one sample, but windows cover ", all, " and the signal is to be ",
                start, " to ", end);
          const Tensor divisor = narrow(total, 1, start, stop - start);
          check(x.device().is_meta() || abs(divisor).min().item<double>() > 1e-11,
                "window overlap add min: the windows leave samples uncovered");
          signal = narrow(signal, 1, start, stop - start) / divisor;
          if (end > stop) signal = constant_pad_nd(signal, {0, end - stop});
          return x.dim() == 2 ? squeeze(signal, Ints(0)) : signal;
        },
    .autocast = Autocast::fp32,
}};

}  // namespace rush
