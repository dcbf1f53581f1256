// The methods of Tensor that are operators: see include/rushlight/methods.h.
#include "rushlight/ops.h"

namespace rush {

namespace {

/// The in-place form of one overload, with all its arguments.
template <size_t Which, Text... S, class... A>
Tensor write(const Op<S...>& op, const Tensor& self, const A&... rest) {
  Value args[kMaxArgs] = {Value(self), Value(rest)...};
  dispatch_in_place(op.template overload<Which>(), args);
  return self;
}

}  // namespace

// activations
Tensor Tensor::relu() const { return rush::relu(*this); }
Tensor Tensor::relu_() const { return write<0>(rush::relu, *this); }
Tensor Tensor::prelu(const Tensor& weight) const { return rush::prelu(*this, weight); }
Tensor Tensor::hardshrink(const Scalar& lambd) const { return rush::hardshrink(*this, lambd); }
Tensor Tensor::threshold(const Scalar& threshold, const Scalar& value) const {
  return rush::threshold(*this, threshold, value);
}
Tensor Tensor::threshold_(const Scalar& threshold, const Scalar& value) const {
  return write<0>(rush::threshold, *this, threshold, value);
}

// creation
Tensor Tensor::new_empty(Ints size, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory,
                         bool requires_grad) const {
  return rush::new_empty(*this, size, dtype, layout, device, pin_memory, requires_grad);
}
Tensor Tensor::new_empty_strided(Ints size, Ints stride, OptDType dtype, OptLayout layout, OptDevice device,
                                 OptBool pin_memory, bool requires_grad) const {
  return rush::new_empty_strided(*this, size, stride, dtype, layout, device, pin_memory, requires_grad);
}
Tensor Tensor::new_zeros(Ints size, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory,
                         bool requires_grad) const {
  return rush::new_zeros(*this, size, dtype, layout, device, pin_memory, requires_grad);
}
Tensor Tensor::new_ones(Ints size, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory,
                        bool requires_grad) const {
  return rush::new_ones(*this, size, dtype, layout, device, pin_memory, requires_grad);
}
Tensor Tensor::new_full(Ints size, const Scalar& fill_value, OptDType dtype, OptLayout layout, OptDevice device,
                        OptBool pin_memory, bool requires_grad) const {
  return rush::new_full(*this, size, fill_value, dtype, layout, device, pin_memory, requires_grad);
}
bool Tensor::is_signed() const { return rush::is_signed_(*this); }
bool Tensor::is_conj() const { return rush::is_conj(*this); }
bool Tensor::is_neg() const { return rush::is_neg(*this); }
bool Tensor::is_inference() const { return rush::is_inference(*this); }
bool Tensor::is_nonzero() const { return rush::is_nonzero(*this); }
bool Tensor::is_same_size(const Tensor& other) const { return rush::is_same_size(*this, other); }

// fft
Tensor Tensor::stft(int64_t n_fft, OptInt hop_length, OptInt win_length, const Tensor& window, bool center,
                    std::string_view pad_mode, bool normalized, OptBool onesided, OptBool return_complex,
                    OptBool align_to_window) const {
  return rush::stft(*this, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided,
                    return_complex, align_to_window);
}
Tensor Tensor::istft(int64_t n_fft, OptInt hop_length, OptInt win_length, const Tensor& window, bool center,
                     bool normalized, OptBool onesided, OptInt length, bool return_complex) const {
  return rush::istft(*this, n_fft, hop_length, win_length, window, center, normalized, onesided, length,
                     return_complex);
}

// functions
Tensor Tensor::ceil() const { return rush::ceil(*this); }
Tensor Tensor::ceil_() const { return write<0>(rush::ceil, *this); }
Tensor Tensor::floor() const { return rush::floor(*this); }
Tensor Tensor::floor_() const { return write<0>(rush::floor, *this); }
Tensor Tensor::trunc() const { return rush::trunc(*this); }
Tensor Tensor::trunc_() const { return write<0>(rush::trunc, *this); }
Tensor Tensor::fix() const { return rush::fix(*this); }
Tensor Tensor::fix_() const { return write<0>(rush::fix, *this); }
Tensor Tensor::frac() const { return rush::frac(*this); }
Tensor Tensor::frac_() const { return write<0>(rush::frac, *this); }
Tensor Tensor::round() const { return rush::round(*this); }
Tensor Tensor::round_() const { return write<0>(rush::round, *this); }
Tensor Tensor::round(int64_t decimals) const { return rush::round(*this, decimals); }
Tensor Tensor::round_(int64_t decimals) const { return write<1>(rush::round, *this, decimals); }
std::array<Tensor, 2> Tensor::frexp() const { return rush::frexp(*this); }
Tensor Tensor::exp() const { return rush::exp(*this); }
Tensor Tensor::exp_() const { return write<0>(rush::exp, *this); }
Tensor Tensor::exp2() const { return rush::exp2(*this); }
Tensor Tensor::exp2_() const { return write<0>(rush::exp2, *this); }
Tensor Tensor::expm1() const { return rush::expm1(*this); }
Tensor Tensor::expm1_() const { return write<0>(rush::expm1, *this); }
Tensor Tensor::log() const { return rush::log(*this); }
Tensor Tensor::log_() const { return write<0>(rush::log, *this); }
Tensor Tensor::log2() const { return rush::log2(*this); }
Tensor Tensor::log2_() const { return write<0>(rush::log2, *this); }
Tensor Tensor::log10() const { return rush::log10(*this); }
Tensor Tensor::log10_() const { return write<0>(rush::log10, *this); }
Tensor Tensor::log1p() const { return rush::log1p(*this); }
Tensor Tensor::log1p_() const { return write<0>(rush::log1p, *this); }
Tensor Tensor::sqrt() const { return rush::sqrt(*this); }
Tensor Tensor::sqrt_() const { return write<0>(rush::sqrt, *this); }
Tensor Tensor::rsqrt() const { return rush::rsqrt(*this); }
Tensor Tensor::rsqrt_() const { return write<0>(rush::rsqrt, *this); }
Tensor Tensor::sin() const { return rush::sin(*this); }
Tensor Tensor::sin_() const { return write<0>(rush::sin, *this); }
Tensor Tensor::cos() const { return rush::cos(*this); }
Tensor Tensor::cos_() const { return write<0>(rush::cos, *this); }
Tensor Tensor::tan() const { return rush::tan(*this); }
Tensor Tensor::tan_() const { return write<0>(rush::tan, *this); }
Tensor Tensor::asin() const { return rush::asin(*this); }
Tensor Tensor::asin_() const { return write<0>(rush::asin, *this); }
Tensor Tensor::acos() const { return rush::acos(*this); }
Tensor Tensor::acos_() const { return write<0>(rush::acos, *this); }
Tensor Tensor::atan() const { return rush::atan(*this); }
Tensor Tensor::atan_() const { return write<0>(rush::atan, *this); }
Tensor Tensor::sinh() const { return rush::sinh(*this); }
Tensor Tensor::sinh_() const { return write<0>(rush::sinh, *this); }
Tensor Tensor::cosh() const { return rush::cosh(*this); }
Tensor Tensor::cosh_() const { return write<0>(rush::cosh, *this); }
Tensor Tensor::tanh() const { return rush::tanh(*this); }
Tensor Tensor::tanh_() const { return write<0>(rush::tanh, *this); }
Tensor Tensor::asinh() const { return rush::asinh(*this); }
Tensor Tensor::asinh_() const { return write<0>(rush::asinh, *this); }
Tensor Tensor::acosh() const { return rush::acosh(*this); }
Tensor Tensor::acosh_() const { return write<0>(rush::acosh, *this); }
Tensor Tensor::atanh() const { return rush::atanh(*this); }
Tensor Tensor::atanh_() const { return write<0>(rush::atanh, *this); }
Tensor Tensor::erf() const { return rush::erf(*this); }
Tensor Tensor::erf_() const { return write<0>(rush::erf, *this); }
Tensor Tensor::erfc() const { return rush::erfc(*this); }
Tensor Tensor::erfc_() const { return write<0>(rush::erfc, *this); }
Tensor Tensor::deg2rad() const { return rush::deg2rad(*this); }
Tensor Tensor::deg2rad_() const { return write<0>(rush::deg2rad, *this); }
Tensor Tensor::rad2deg() const { return rush::rad2deg(*this); }
Tensor Tensor::rad2deg_() const { return write<0>(rush::rad2deg, *this); }
Tensor Tensor::sigmoid() const { return rush::sigmoid(*this); }
Tensor Tensor::sigmoid_() const { return write<0>(rush::sigmoid, *this); }
Tensor Tensor::arccos() const { return rush::arccos(*this); }
Tensor Tensor::arccos_() const { return write<0>(rush::arccos, *this); }
Tensor Tensor::arcsin() const { return rush::arcsin(*this); }
Tensor Tensor::arcsin_() const { return write<0>(rush::arcsin, *this); }
Tensor Tensor::arctan() const { return rush::arctan(*this); }
Tensor Tensor::arctan_() const { return write<0>(rush::arctan, *this); }
Tensor Tensor::arccosh() const { return rush::arccosh(*this); }
Tensor Tensor::arccosh_() const { return write<0>(rush::arccosh, *this); }
Tensor Tensor::arcsinh() const { return rush::arcsinh(*this); }
Tensor Tensor::arcsinh_() const { return write<0>(rush::arcsinh, *this); }
Tensor Tensor::arctanh() const { return rush::arctanh(*this); }
Tensor Tensor::arctanh_() const { return write<0>(rush::arctanh, *this); }
Tensor Tensor::special_exp2() const { return rush::special_exp2(*this); }
Tensor Tensor::special_expm1() const { return rush::special_expm1(*this); }
Tensor Tensor::special_log1p() const { return rush::special_log1p(*this); }
Tensor Tensor::special_erf() const { return rush::special_erf(*this); }
Tensor Tensor::special_erfc() const { return rush::special_erfc(*this); }
Tensor Tensor::special_expit() const { return rush::special_expit(*this); }
Tensor Tensor::special_round() const { return rush::special_round(*this); }
Tensor Tensor::angle() const { return rush::angle(*this); }
Tensor Tensor::angle_() const { return write<0>(rush::angle, *this); }
Tensor Tensor::logit(OptDouble eps) const { return rush::logit(*this, eps); }
Tensor Tensor::logit_(OptDouble eps) const { return write<0>(rush::logit, *this, eps); }
Tensor Tensor::special_logit(OptDouble eps) const { return rush::special_logit(*this, eps); }
Tensor Tensor::atan2(const Tensor& other) const { return rush::atan2(*this, other); }
Tensor Tensor::atan2_(const Tensor& other) const { return write<0>(rush::atan2, *this, other); }
Tensor Tensor::arctan2(const Tensor& other) const { return rush::arctan2(*this, other); }
Tensor Tensor::arctan2_(const Tensor& other) const { return write<0>(rush::arctan2, *this, other); }
Tensor Tensor::hypot(const Tensor& other) const { return rush::hypot(*this, other); }
Tensor Tensor::hypot_(const Tensor& other) const { return write<0>(rush::hypot, *this, other); }
Tensor Tensor::copysign(const Tensor& other) const { return rush::copysign(*this, other); }
Tensor Tensor::copysign_(const Tensor& other) const { return write<0>(rush::copysign, *this, other); }
Tensor Tensor::nextafter(const Tensor& other) const { return rush::nextafter(*this, other); }
Tensor Tensor::nextafter_(const Tensor& other) const { return write<0>(rush::nextafter, *this, other); }
Tensor Tensor::logaddexp(const Tensor& other) const { return rush::logaddexp(*this, other); }
Tensor Tensor::logaddexp_(const Tensor& other) const { return write<0>(rush::logaddexp, *this, other); }
Tensor Tensor::logaddexp2(const Tensor& other) const { return rush::logaddexp2(*this, other); }
Tensor Tensor::logaddexp2_(const Tensor& other) const { return write<0>(rush::logaddexp2, *this, other); }
Tensor Tensor::xlogy(const Tensor& other) const { return rush::xlogy(*this, other); }
Tensor Tensor::xlogy_(const Tensor& other) const { return write<0>(rush::xlogy, *this, other); }
Tensor Tensor::special_xlogy(const Tensor& other) const { return rush::special_xlogy(*this, other); }
Tensor Tensor::special_xlog1py(const Tensor& other) const { return rush::special_xlog1py(*this, other); }
Tensor Tensor::special_xlog1py_(const Tensor& other) const { return write<0>(rush::special_xlog1py, *this, other); }

// indexing
Tensor Tensor::index(Tensors indices) const { return rush::index(*this, indices); }
Tensor Tensor::index_put(Tensors indices, const Tensor& values, bool accumulate) const {
  return rush::index_put(*this, indices, values, accumulate);
}
Tensor Tensor::index_put_(Tensors indices, const Tensor& values, bool accumulate) const {
  return write<0>(rush::index_put, *this, indices, values, accumulate);
}
Tensor Tensor::index_select(int64_t dim, const Tensor& index) const { return rush::index_select(*this, dim, index); }
Tensor Tensor::index_add(int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) const {
  return rush::index_add(*this, dim, index, source, alpha);
}
Tensor Tensor::index_add_(int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) const {
  return write<0>(rush::index_add, *this, dim, index, source, alpha);
}
Tensor Tensor::index_copy(int64_t dim, const Tensor& index, const Tensor& source) const {
  return rush::index_copy(*this, dim, index, source);
}
Tensor Tensor::index_copy_(int64_t dim, const Tensor& index, const Tensor& source) const {
  return write<0>(rush::index_copy, *this, dim, index, source);
}
Tensor Tensor::index_fill(int64_t dim, const Tensor& index, const Tensor& value) const {
  return rush::index_fill(*this, dim, index, value);
}
Tensor Tensor::index_fill_(int64_t dim, const Tensor& index, const Tensor& value) const {
  return write<0>(rush::index_fill, *this, dim, index, value);
}
Tensor Tensor::index_reduce(int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
                            bool include_self) const {
  return rush::index_reduce(*this, dim, index, source, reduce, include_self);
}
Tensor Tensor::index_reduce_(int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
                             bool include_self) const {
  return write<0>(rush::index_reduce, *this, dim, index, source, reduce, include_self);
}
Tensor Tensor::gather(int64_t dim, const Tensor& index, bool sparse_grad) const {
  return rush::gather(*this, dim, index, sparse_grad);
}
Tensor Tensor::scatter(int64_t dim, const Tensor& index, const Tensor& src) const {
  return rush::scatter(*this, dim, index, src);
}
Tensor Tensor::scatter_(int64_t dim, const Tensor& index, const Tensor& src) const {
  return write<0>(rush::scatter, *this, dim, index, src);
}
Tensor Tensor::scatter(int64_t dim, const Tensor& index, const Scalar& value) const {
  return rush::scatter(*this, dim, index, value);
}
Tensor Tensor::scatter_(int64_t dim, const Tensor& index, const Scalar& value) const {
  return write<1>(rush::scatter, *this, dim, index, value);
}
Tensor Tensor::scatter(int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce) const {
  return rush::scatter(*this, dim, index, src, reduce);
}
Tensor Tensor::scatter_(int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce) const {
  return write<2>(rush::scatter, *this, dim, index, src, reduce);
}
Tensor Tensor::scatter(int64_t dim, const Tensor& index, const Scalar& value, std::string_view reduce) const {
  return rush::scatter(*this, dim, index, value, reduce);
}
Tensor Tensor::scatter_(int64_t dim, const Tensor& index, const Scalar& value, std::string_view reduce) const {
  return write<3>(rush::scatter, *this, dim, index, value, reduce);
}
Tensor Tensor::scatter_add(int64_t dim, const Tensor& index, const Tensor& src) const {
  return rush::scatter_add(*this, dim, index, src);
}
Tensor Tensor::scatter_add_(int64_t dim, const Tensor& index, const Tensor& src) const {
  return write<0>(rush::scatter_add, *this, dim, index, src);
}
Tensor Tensor::scatter_reduce(int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                              bool include_self) const {
  return rush::scatter_reduce(*this, dim, index, src, reduce, include_self);
}
Tensor Tensor::scatter_reduce_(int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                               bool include_self) const {
  return write<0>(rush::scatter_reduce, *this, dim, index, src, reduce, include_self);
}
Tensor Tensor::take(const Tensor& index) const { return rush::take(*this, index); }
Tensor Tensor::put(const Tensor& index, const Tensor& source, bool accumulate) const {
  return rush::put(*this, index, source, accumulate);
}
Tensor Tensor::put_(const Tensor& index, const Tensor& source, bool accumulate) const {
  return write<0>(rush::put, *this, index, source, accumulate);
}
Tensor Tensor::take_along_dim(const Tensor& indices, OptInt dim) const {
  return rush::take_along_dim(*this, indices, dim);
}
Tensor Tensor::masked_fill(const Tensor& mask, const Tensor& value) const {
  return rush::masked_fill(*this, mask, value);
}
Tensor Tensor::masked_fill_(const Tensor& mask, const Tensor& value) const {
  return write<0>(rush::masked_fill, *this, mask, value);
}
Tensor Tensor::masked_select(const Tensor& mask) const { return rush::masked_select(*this, mask); }
Tensor Tensor::masked_scatter(const Tensor& mask, const Tensor& source) const {
  return rush::masked_scatter(*this, mask, source);
}
Tensor Tensor::masked_scatter_(const Tensor& mask, const Tensor& source) const {
  return write<0>(rush::masked_scatter, *this, mask, source);
}
Tensor Tensor::nonzero() const { return rush::nonzero(*this); }
std::vector<Tensor> Tensor::nonzero_numpy() const { return rush::nonzero_numpy(*this); }
Tensor Tensor::nonzero_static(int64_t size, int64_t fill_value) const {
  return rush::nonzero_static(*this, size, fill_value);
}
Tensor Tensor::argwhere() const { return rush::argwhere(*this); }
Tensor Tensor::embedding_renorm(const Tensor& indices, double max_norm, double norm_type) const {
  return rush::embedding_renorm(*this, indices, max_norm, norm_type);
}
Tensor Tensor::embedding_renorm_(const Tensor& indices, double max_norm, double norm_type) const {
  return write<0>(rush::embedding_renorm, *this, indices, max_norm, norm_type);
}
Tensor Tensor::repeat_interleave(const Tensor& repeats, OptInt dim, OptInt output_size) const {
  return rush::repeat_interleave(*this, repeats, dim, output_size);
}
Tensor Tensor::repeat_interleave(int64_t repeats, OptInt dim, OptInt output_size) const {
  return rush::repeat_interleave(*this, repeats, dim, output_size);
}
Tensor Tensor::tril(int64_t diagonal) const { return rush::tril(*this, diagonal); }
Tensor Tensor::tril_(int64_t diagonal) const { return write<0>(rush::tril, *this, diagonal); }
Tensor Tensor::triu(int64_t diagonal) const { return rush::triu(*this, diagonal); }
Tensor Tensor::triu_(int64_t diagonal) const { return write<0>(rush::triu, *this, diagonal); }
Tensor Tensor::diagonal(int64_t offset, int64_t dim1, int64_t dim2) const {
  return rush::diagonal(*this, offset, dim1, dim2);
}
Tensor Tensor::diag_embed(int64_t offset, int64_t dim1, int64_t dim2) const {
  return rush::diag_embed(*this, offset, dim1, dim2);
}
Tensor Tensor::diag(int64_t diagonal) const { return rush::diag(*this, diagonal); }
Tensor Tensor::diagflat(int64_t offset) const { return rush::diagflat(*this, offset); }
Tensor Tensor::trace() const { return rush::trace(*this); }
Tensor Tensor::diagonal_scatter(const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2) const {
  return rush::diagonal_scatter(*this, src, offset, dim1, dim2);
}
Tensor Tensor::select_scatter(const Tensor& src, int64_t dim, int64_t index) const {
  return rush::select_scatter(*this, src, dim, index);
}
Tensor Tensor::slice_scatter(const Tensor& src, int64_t dim, OptInt start, OptInt end, int64_t step) const {
  return rush::slice_scatter(*this, src, dim, start, end, step);
}
Tensor Tensor::as_strided_scatter(const Tensor& src, Ints size, Ints stride, OptInt storage_offset) const {
  return rush::as_strided_scatter(*this, src, size, stride, storage_offset);
}

// joining
Tensor Tensor::broadcast_to(Ints size) const { return rush::broadcast_to(*this, size); }
std::vector<Tensor> Tensor::split_with_sizes(Ints split_sizes, int64_t dim) const {
  return rush::split_with_sizes(*this, split_sizes, dim);
}
std::vector<Tensor> Tensor::split(int64_t split_size, int64_t dim) const { return rush::split(*this, split_size, dim); }
std::vector<Tensor> Tensor::split(Ints split_size, int64_t dim) const { return rush::split(*this, split_size, dim); }
std::vector<Tensor> Tensor::chunk(int64_t chunks, int64_t dim) const { return rush::chunk(*this, chunks, dim); }
std::vector<Tensor> Tensor::tensor_split(int64_t sections, int64_t dim) const {
  return rush::tensor_split(*this, sections, dim);
}
std::vector<Tensor> Tensor::tensor_split(Ints indices, int64_t dim) const {
  return rush::tensor_split(*this, indices, dim);
}
std::vector<Tensor> Tensor::tensor_split(const Tensor& tensor_indices_or_sections, int64_t dim) const {
  return rush::tensor_split(*this, tensor_indices_or_sections, dim);
}
std::vector<Tensor> Tensor::hsplit(int64_t sections) const { return rush::hsplit(*this, sections); }
std::vector<Tensor> Tensor::hsplit(Ints indices) const { return rush::hsplit(*this, indices); }
std::vector<Tensor> Tensor::vsplit(int64_t sections) const { return rush::vsplit(*this, sections); }
std::vector<Tensor> Tensor::vsplit(Ints indices) const { return rush::vsplit(*this, indices); }
std::vector<Tensor> Tensor::dsplit(int64_t sections) const { return rush::dsplit(*this, sections); }
std::vector<Tensor> Tensor::dsplit(Ints indices) const { return rush::dsplit(*this, indices); }
std::vector<Tensor> Tensor::unbind(int64_t dim) const { return rush::unbind(*this, dim); }
std::vector<Tensor> Tensor::unsafe_split(int64_t split_size, int64_t dim) const {
  return rush::unsafe_split(*this, split_size, dim);
}
std::vector<Tensor> Tensor::unsafe_split_with_sizes(Ints split_sizes, int64_t dim) const {
  return rush::unsafe_split_with_sizes(*this, split_sizes, dim);
}
std::vector<Tensor> Tensor::unsafe_chunk(int64_t chunks, int64_t dim) const {
  return rush::unsafe_chunk(*this, chunks, dim);
}
Tensor Tensor::unfold(int64_t dimension, int64_t size, int64_t step) const {
  return rush::unfold(*this, dimension, size, step);
}
Tensor Tensor::movedim(int64_t source, int64_t destination) const { return rush::movedim(*this, source, destination); }
Tensor Tensor::movedim(Ints source, Ints destination) const { return rush::movedim(*this, source, destination); }
Tensor Tensor::moveaxis(int64_t source, int64_t destination) const {
  return rush::moveaxis(*this, source, destination);
}
Tensor Tensor::moveaxis(Ints source, Ints destination) const { return rush::moveaxis(*this, source, destination); }
Tensor Tensor::swapaxes(int64_t axis0, int64_t axis1) const { return rush::swapaxes(*this, axis0, axis1); }
Tensor Tensor::swapaxes_(int64_t axis0, int64_t axis1) const { return write<0>(rush::swapaxes, *this, axis0, axis1); }
Tensor Tensor::swapdims(int64_t dim0, int64_t dim1) const { return rush::swapdims(*this, dim0, dim1); }
Tensor Tensor::swapdims_(int64_t dim0, int64_t dim1) const { return write<0>(rush::swapdims, *this, dim0, dim1); }
Tensor Tensor::flatten(int64_t start_dim, int64_t end_dim) const { return rush::flatten(*this, start_dim, end_dim); }
Tensor Tensor::unflatten(int64_t dim, Ints sizes) const { return rush::unflatten(*this, dim, sizes); }
Tensor Tensor::ravel() const { return rush::ravel(*this); }
Tensor Tensor::numpy_T() const { return rush::numpy_T(*this); }
Tensor Tensor::mT() const { return rush::mT(*this); }
Tensor Tensor::matrix_H() const { return rush::matrix_H(*this); }
Tensor Tensor::mH() const { return rush::mH(*this); }
Tensor Tensor::adjoint() const { return rush::adjoint(*this); }
Tensor Tensor::expand_as(const Tensor& other) const { return rush::expand_as(*this, other); }
Tensor Tensor::view_as(const Tensor& other) const { return rush::view_as(*this, other); }
Tensor Tensor::reshape_as(const Tensor& other) const { return rush::reshape_as(*this, other); }
Tensor Tensor::repeat(Ints repeats) const { return rush::repeat(*this, repeats); }
Tensor Tensor::tile(Ints dims) const { return rush::tile(*this, dims); }
Tensor Tensor::roll(Ints shifts, Ints dims) const { return rush::roll(*this, shifts, dims); }
Tensor Tensor::flip(Ints dims) const { return rush::flip(*this, dims); }
Tensor Tensor::fliplr() const { return rush::fliplr(*this); }
Tensor Tensor::flipud() const { return rush::flipud(*this); }
Tensor Tensor::rot90(int64_t k, Ints dims) const { return rush::rot90(*this, k, dims); }
Tensor Tensor::alias_copy() const { return rush::alias_copy(*this); }
Tensor Tensor::as_strided_copy(Ints size, Ints stride, OptInt storage_offset) const {
  return rush::as_strided_copy(*this, size, stride, storage_offset);
}
Tensor Tensor::detach_copy() const { return rush::detach_copy(*this); }
Tensor Tensor::diagonal_copy(int64_t offset, int64_t dim1, int64_t dim2) const {
  return rush::diagonal_copy(*this, offset, dim1, dim2);
}
Tensor Tensor::expand_copy(Ints size, bool implicit) const { return rush::expand_copy(*this, size, implicit); }
Tensor Tensor::narrow_copy(int64_t dim, int64_t start, int64_t length) const {
  return rush::narrow_copy(*this, dim, start, length);
}
Tensor Tensor::permute_copy(Ints dims) const { return rush::permute_copy(*this, dims); }
Tensor Tensor::select_copy(int64_t dim, int64_t index) const { return rush::select_copy(*this, dim, index); }
Tensor Tensor::slice_copy(int64_t dim, OptInt start, OptInt end, int64_t step) const {
  return rush::slice_copy(*this, dim, start, end, step);
}
std::vector<Tensor> Tensor::split_copy(int64_t split_size, int64_t dim) const {
  return rush::split_copy(*this, split_size, dim);
}
std::vector<Tensor> Tensor::split_with_sizes_copy(Ints split_sizes, int64_t dim) const {
  return rush::split_with_sizes_copy(*this, split_sizes, dim);
}
Tensor Tensor::squeeze_copy() const { return rush::squeeze_copy(*this); }
Tensor Tensor::squeeze_copy(Ints dim) const { return rush::squeeze_copy(*this, dim); }
Tensor Tensor::t_copy() const { return rush::t_copy(*this); }
Tensor Tensor::transpose_copy(int64_t dim0, int64_t dim1) const { return rush::transpose_copy(*this, dim0, dim1); }
std::vector<Tensor> Tensor::unbind_copy(int64_t dim) const { return rush::unbind_copy(*this, dim); }
Tensor Tensor::unfold_copy(int64_t dimension, int64_t size, int64_t step) const {
  return rush::unfold_copy(*this, dimension, size, step);
}
Tensor Tensor::unsqueeze_copy(int64_t dim) const { return rush::unsqueeze_copy(*this, dim); }
Tensor Tensor::view_copy(Ints size) const { return rush::view_copy(*this, size); }
Tensor Tensor::view_copy(DType dtype) const { return rush::view_copy(*this, dtype); }
Tensor Tensor::view_as_complex_copy() const { return rush::view_as_complex_copy(*this); }
Tensor Tensor::view_as_real_copy() const { return rush::view_as_real_copy(*this); }
Tensor Tensor::constant_pad_nd(Ints pad, const Scalar& value) const { return rush::constant_pad_nd(*this, pad, value); }

// matmul
Tensor Tensor::mm(const Tensor& mat2) const { return rush::mm(*this, mat2); }
Tensor Tensor::bmm(const Tensor& mat2) const { return rush::bmm(*this, mat2); }
Tensor Tensor::mv(const Tensor& vec) const { return rush::mv(*this, vec); }
Tensor Tensor::dot(const Tensor& tensor) const { return rush::dot(*this, tensor); }
Tensor Tensor::vdot(const Tensor& other) const { return rush::vdot(*this, other); }
Tensor Tensor::matmul(const Tensor& other) const { return rush::matmul(*this, other); }
Tensor Tensor::addmm(const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha) const {
  return rush::addmm(*this, mat1, mat2, beta, alpha);
}
Tensor Tensor::addmm_(const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha) const {
  return write<0>(rush::addmm, *this, mat1, mat2, beta, alpha);
}
Tensor Tensor::addmv(const Tensor& mat, const Tensor& vec, const Scalar& beta, const Scalar& alpha) const {
  return rush::addmv(*this, mat, vec, beta, alpha);
}
Tensor Tensor::addmv_(const Tensor& mat, const Tensor& vec, const Scalar& beta, const Scalar& alpha) const {
  return write<0>(rush::addmv, *this, mat, vec, beta, alpha);
}
Tensor Tensor::addr(const Tensor& vec1, const Tensor& vec2, const Scalar& beta, const Scalar& alpha) const {
  return rush::addr(*this, vec1, vec2, beta, alpha);
}
Tensor Tensor::addr_(const Tensor& vec1, const Tensor& vec2, const Scalar& beta, const Scalar& alpha) const {
  return write<0>(rush::addr, *this, vec1, vec2, beta, alpha);
}
Tensor Tensor::addbmm(const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha) const {
  return rush::addbmm(*this, batch1, batch2, beta, alpha);
}
Tensor Tensor::addbmm_(const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha) const {
  return write<0>(rush::addbmm, *this, batch1, batch2, beta, alpha);
}
Tensor Tensor::baddbmm(const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha) const {
  return rush::baddbmm(*this, batch1, batch2, beta, alpha);
}
Tensor Tensor::baddbmm_(const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha) const {
  return write<0>(rush::baddbmm, *this, batch1, batch2, beta, alpha);
}
Tensor Tensor::outer(const Tensor& vec2) const { return rush::outer(*this, vec2); }
Tensor Tensor::ger(const Tensor& vec2) const { return rush::ger(*this, vec2); }
Tensor Tensor::inner(const Tensor& other) const { return rush::inner(*this, other); }
Tensor Tensor::kron(const Tensor& other) const { return rush::kron(*this, other); }
Tensor Tensor::cross(const Tensor& other, OptInt dim) const { return rush::cross(*this, other, dim); }

// memory
Tensor Tensor::fill_(const Tensor& value) const { return write<0>(rush::fill, *this, value); }
Tensor Tensor::copy_(const Tensor& src, bool non_blocking) const {
  return write<0>(rush::copy, *this, src, non_blocking);
}
Tensor Tensor::clone(OptMemoryFormat memory_format) const { return rush::clone(*this, memory_format); }
Tensor Tensor::contiguous(OptMemoryFormat memory_format) const { return rush::contiguous(*this, memory_format); }
Tensor Tensor::to(OptDevice device, OptDType dtype, bool non_blocking, bool copy, OptMemoryFormat memory_format) const {
  return rush::to(*this, device, dtype, non_blocking, copy, memory_format);
}
Tensor Tensor::to(DType dtype, bool non_blocking, bool copy, OptMemoryFormat memory_format) const {
  return rush::to(*this, dtype, non_blocking, copy, memory_format);
}
Tensor Tensor::to(const Tensor& other, bool non_blocking, bool copy, OptMemoryFormat memory_format) const {
  return rush::to(*this, other, non_blocking, copy, memory_format);
}
Tensor Tensor::type_as(const Tensor& other) const { return rush::type_as(*this, other); }
Tensor Tensor::cpu(OptMemoryFormat memory_format) const { return rush::cpu_(*this, memory_format); }
Tensor Tensor::cuda(OptDevice device, bool non_blocking, OptMemoryFormat memory_format) const {
  return rush::cuda_(*this, device, non_blocking, memory_format);
}
Tensor Tensor::pin_memory(OptDevice device) const { return rush::pin_memory(*this, device); }
bool Tensor::is_pinned(OptDevice device) const { return rush::is_pinned(*this, device); }
Tensor Tensor::byte(OptMemoryFormat memory_format) const { return rush::to_byte(*this, memory_format); }
Tensor Tensor::half(OptMemoryFormat memory_format) const { return rush::to_half(*this, memory_format); }
Tensor Tensor::bfloat16(OptMemoryFormat memory_format) const { return rush::to_bfloat16(*this, memory_format); }
Tensor Tensor::cfloat(OptMemoryFormat memory_format) const { return rush::to_cfloat(*this, memory_format); }
Tensor Tensor::cdouble(OptMemoryFormat memory_format) const { return rush::to_cdouble(*this, memory_format); }
Tensor Tensor::zero_() const { return write<0>(rush::zero, *this); }
Tensor Tensor::resize_(Ints size, OptMemoryFormat memory_format) const {
  return rush::resize_(*this, size, memory_format);
}
Tensor Tensor::resize_as_(const Tensor& the_template, OptMemoryFormat memory_format) const {
  return rush::resize_as_(*this, the_template, memory_format);
}
Tensor Tensor::set_() const { return rush::set_(*this); }
Tensor Tensor::set_(const Tensor& source) const { return rush::set_(*this, source); }
Tensor Tensor::set_(const Tensor& source, int64_t storage_offset, Ints size, Ints stride) const {
  return rush::set_(*this, source, storage_offset, size, stride);
}
Tensor Tensor::conj() const { return rush::conj(*this); }
Tensor Tensor::conj_physical() const { return rush::conj_physical(*this); }
Tensor Tensor::conj_physical_() const { return write<0>(rush::conj_physical, *this); }
Tensor Tensor::resolve_conj() const { return rush::resolve_conj(*this); }
Tensor Tensor::resolve_neg() const { return rush::resolve_neg(*this); }
Tensor Tensor::positive() const { return rush::positive(*this); }

// pointwise
Tensor Tensor::add(const Tensor& other, const Scalar& alpha) const { return rush::add(*this, other, alpha); }
Tensor Tensor::add_(const Tensor& other, const Scalar& alpha) const { return write<0>(rush::add, *this, other, alpha); }
Tensor Tensor::sub(const Tensor& other, const Scalar& alpha) const { return rush::sub(*this, other, alpha); }
Tensor Tensor::sub_(const Tensor& other, const Scalar& alpha) const { return write<0>(rush::sub, *this, other, alpha); }
Tensor Tensor::mul(const Tensor& other) const { return rush::mul(*this, other); }
Tensor Tensor::mul_(const Tensor& other) const { return write<0>(rush::mul, *this, other); }
Tensor Tensor::div(const Tensor& other, OptStr rounding_mode) const { return rush::div(*this, other, rounding_mode); }
Tensor Tensor::div_(const Tensor& other, OptStr rounding_mode) const {
  return write<0>(rush::div, *this, other, rounding_mode);
}
Tensor Tensor::neg() const { return rush::neg(*this); }
Tensor Tensor::neg_() const { return write<0>(rush::neg, *this); }
Tensor Tensor::eq(const Tensor& other) const { return rush::eq(*this, other); }
Tensor Tensor::eq_(const Tensor& other) const { return write<0>(rush::eq, *this, other); }
Tensor Tensor::ne(const Tensor& other) const { return rush::ne(*this, other); }
Tensor Tensor::ne_(const Tensor& other) const { return write<0>(rush::ne, *this, other); }
Tensor Tensor::lt(const Tensor& other) const { return rush::lt(*this, other); }
Tensor Tensor::lt_(const Tensor& other) const { return write<0>(rush::lt, *this, other); }
Tensor Tensor::le(const Tensor& other) const { return rush::le(*this, other); }
Tensor Tensor::le_(const Tensor& other) const { return write<0>(rush::le, *this, other); }
Tensor Tensor::gt(const Tensor& other) const { return rush::gt(*this, other); }
Tensor Tensor::gt_(const Tensor& other) const { return write<0>(rush::gt, *this, other); }
Tensor Tensor::ge(const Tensor& other) const { return rush::ge(*this, other); }
Tensor Tensor::ge_(const Tensor& other) const { return write<0>(rush::ge, *this, other); }
Tensor Tensor::bitwise_and(const Tensor& other) const { return rush::bitwise_and(*this, other); }
Tensor Tensor::bitwise_and_(const Tensor& other) const { return write<0>(rush::bitwise_and, *this, other); }
Tensor Tensor::bitwise_or(const Tensor& other) const { return rush::bitwise_or(*this, other); }
Tensor Tensor::bitwise_or_(const Tensor& other) const { return write<0>(rush::bitwise_or, *this, other); }
Tensor Tensor::bitwise_xor(const Tensor& other) const { return rush::bitwise_xor(*this, other); }
Tensor Tensor::bitwise_xor_(const Tensor& other) const { return write<0>(rush::bitwise_xor, *this, other); }
Tensor Tensor::bitwise_not() const { return rush::bitwise_not(*this); }
Tensor Tensor::bitwise_not_() const { return write<0>(rush::bitwise_not, *this); }
Tensor Tensor::floor_divide(const Tensor& other) const { return rush::floor_divide(*this, other); }
Tensor Tensor::floor_divide_(const Tensor& other) const { return write<0>(rush::floor_divide, *this, other); }
Tensor Tensor::remainder(const Tensor& other) const { return rush::remainder(*this, other); }
Tensor Tensor::remainder_(const Tensor& other) const { return write<0>(rush::remainder, *this, other); }
Tensor Tensor::fmod(const Tensor& other) const { return rush::fmod(*this, other); }
Tensor Tensor::fmod_(const Tensor& other) const { return write<0>(rush::fmod, *this, other); }
Tensor Tensor::pow(const Tensor& exponent) const { return rush::pow(*this, exponent); }
Tensor Tensor::pow_(const Tensor& exponent) const { return write<0>(rush::pow, *this, exponent); }
Tensor Tensor::maximum(const Tensor& other) const { return rush::maximum(*this, other); }
Tensor Tensor::maximum_(const Tensor& other) const { return write<0>(rush::maximum, *this, other); }
Tensor Tensor::minimum(const Tensor& other) const { return rush::minimum(*this, other); }
Tensor Tensor::minimum_(const Tensor& other) const { return write<0>(rush::minimum, *this, other); }
Tensor Tensor::fmax(const Tensor& other) const { return rush::fmax(*this, other); }
Tensor Tensor::fmax_(const Tensor& other) const { return write<0>(rush::fmax, *this, other); }
Tensor Tensor::fmin(const Tensor& other) const { return rush::fmin(*this, other); }
Tensor Tensor::fmin_(const Tensor& other) const { return write<0>(rush::fmin, *this, other); }
Tensor Tensor::gcd(const Tensor& other) const { return rush::gcd(*this, other); }
Tensor Tensor::gcd_(const Tensor& other) const { return write<0>(rush::gcd, *this, other); }
Tensor Tensor::lcm(const Tensor& other) const { return rush::lcm(*this, other); }
Tensor Tensor::lcm_(const Tensor& other) const { return write<0>(rush::lcm, *this, other); }
Tensor Tensor::abs() const { return rush::abs(*this); }
Tensor Tensor::abs_() const { return write<0>(rush::abs, *this); }
Tensor Tensor::sign() const { return rush::sign(*this); }
Tensor Tensor::sign_() const { return write<0>(rush::sign, *this); }
Tensor Tensor::sgn() const { return rush::sgn(*this); }
Tensor Tensor::sgn_() const { return write<0>(rush::sgn, *this); }
Tensor Tensor::square() const { return rush::square(*this); }
Tensor Tensor::square_() const { return write<0>(rush::square, *this); }
Tensor Tensor::reciprocal() const { return rush::reciprocal(*this); }
Tensor Tensor::reciprocal_() const { return write<0>(rush::reciprocal, *this); }
Tensor Tensor::rsub(const Tensor& other, const Scalar& alpha) const { return rush::rsub(*this, other, alpha); }
Tensor Tensor::lerp(const Tensor& end, const Tensor& weight) const { return rush::lerp(*this, end, weight); }
Tensor Tensor::lerp_(const Tensor& end, const Tensor& weight) const { return write<0>(rush::lerp, *this, end, weight); }
Tensor Tensor::addcmul(const Tensor& tensor1, const Tensor& tensor2, const Scalar& value) const {
  return rush::addcmul(*this, tensor1, tensor2, value);
}
Tensor Tensor::addcmul_(const Tensor& tensor1, const Tensor& tensor2, const Scalar& value) const {
  return write<0>(rush::addcmul, *this, tensor1, tensor2, value);
}
Tensor Tensor::addcdiv(const Tensor& tensor1, const Tensor& tensor2, const Scalar& value) const {
  return rush::addcdiv(*this, tensor1, tensor2, value);
}
Tensor Tensor::addcdiv_(const Tensor& tensor1, const Tensor& tensor2, const Scalar& value) const {
  return write<0>(rush::addcdiv, *this, tensor1, tensor2, value);
}
Tensor Tensor::clamp(const Tensor& min, const Tensor& max) const { return rush::clamp(*this, min, max); }
Tensor Tensor::clamp_(const Tensor& min, const Tensor& max) const { return write<0>(rush::clamp, *this, min, max); }
Tensor Tensor::clamp_min(const Tensor& min) const { return rush::clamp_min(*this, min); }
Tensor Tensor::clamp_min_(const Tensor& min) const { return write<0>(rush::clamp_min, *this, min); }
Tensor Tensor::clamp_max(const Tensor& max) const { return rush::clamp_max(*this, max); }
Tensor Tensor::clamp_max_(const Tensor& max) const { return write<0>(rush::clamp_max, *this, max); }
Tensor Tensor::clip(const Tensor& min, const Tensor& max) const { return rush::clip(*this, min, max); }
Tensor Tensor::clip_(const Tensor& min, const Tensor& max) const { return write<0>(rush::clip, *this, min, max); }
Tensor Tensor::ldexp(const Tensor& other) const { return rush::ldexp(*this, other); }
Tensor Tensor::ldexp_(const Tensor& other) const { return write<0>(rush::ldexp, *this, other); }
Tensor Tensor::float_power(const Tensor& exponent) const { return rush::float_power(*this, exponent); }
Tensor Tensor::float_power_(const Tensor& exponent) const { return write<0>(rush::float_power, *this, exponent); }
Tensor Tensor::true_divide(const Tensor& other) const { return rush::true_divide(*this, other); }
Tensor Tensor::true_divide_(const Tensor& other) const { return write<0>(rush::true_divide, *this, other); }
Tensor Tensor::multiply(const Tensor& other) const { return rush::multiply(*this, other); }
Tensor Tensor::multiply_(const Tensor& other) const { return write<0>(rush::multiply, *this, other); }
Tensor Tensor::divide(const Tensor& other, OptStr rounding_mode) const {
  return rush::divide(*this, other, rounding_mode);
}
Tensor Tensor::divide_(const Tensor& other, OptStr rounding_mode) const {
  return write<0>(rush::divide, *this, other, rounding_mode);
}
Tensor Tensor::subtract(const Tensor& other, const Scalar& alpha) const { return rush::subtract(*this, other, alpha); }
Tensor Tensor::subtract_(const Tensor& other, const Scalar& alpha) const {
  return write<0>(rush::subtract, *this, other, alpha);
}
Tensor Tensor::negative() const { return rush::negative(*this); }
Tensor Tensor::negative_() const { return write<0>(rush::negative, *this); }
Tensor Tensor::absolute() const { return rush::absolute(*this); }
Tensor Tensor::absolute_() const { return write<0>(rush::absolute, *this); }
Tensor Tensor::greater(const Tensor& other) const { return rush::greater(*this, other); }
Tensor Tensor::greater_(const Tensor& other) const { return write<0>(rush::greater, *this, other); }
Tensor Tensor::greater_equal(const Tensor& other) const { return rush::greater_equal(*this, other); }
Tensor Tensor::greater_equal_(const Tensor& other) const { return write<0>(rush::greater_equal, *this, other); }
Tensor Tensor::less(const Tensor& other) const { return rush::less(*this, other); }
Tensor Tensor::less_(const Tensor& other) const { return write<0>(rush::less, *this, other); }
Tensor Tensor::less_equal(const Tensor& other) const { return rush::less_equal(*this, other); }
Tensor Tensor::less_equal_(const Tensor& other) const { return write<0>(rush::less_equal, *this, other); }
Tensor Tensor::not_equal(const Tensor& other) const { return rush::not_equal(*this, other); }
Tensor Tensor::not_equal_(const Tensor& other) const { return write<0>(rush::not_equal, *this, other); }
Tensor Tensor::logical_and(const Tensor& other) const { return rush::logical_and(*this, other); }
Tensor Tensor::logical_and_(const Tensor& other) const { return write<0>(rush::logical_and, *this, other); }
Tensor Tensor::logical_or(const Tensor& other) const { return rush::logical_or(*this, other); }
Tensor Tensor::logical_or_(const Tensor& other) const { return write<0>(rush::logical_or, *this, other); }
Tensor Tensor::logical_xor(const Tensor& other) const { return rush::logical_xor(*this, other); }
Tensor Tensor::logical_xor_(const Tensor& other) const { return write<0>(rush::logical_xor, *this, other); }
Tensor Tensor::logical_not() const { return rush::logical_not(*this); }
Tensor Tensor::logical_not_() const { return write<0>(rush::logical_not, *this); }
Tensor Tensor::bitwise_left_shift(const Tensor& other) const { return rush::bitwise_left_shift(*this, other); }
Tensor Tensor::bitwise_left_shift_(const Tensor& other) const {
  return write<0>(rush::bitwise_left_shift, *this, other);
}
Tensor Tensor::bitwise_right_shift(const Tensor& other) const { return rush::bitwise_right_shift(*this, other); }
Tensor Tensor::bitwise_right_shift_(const Tensor& other) const {
  return write<0>(rush::bitwise_right_shift, *this, other);
}
Tensor Tensor::isnan() const { return rush::isnan(*this); }
Tensor Tensor::isinf() const { return rush::isinf(*this); }
Tensor Tensor::isfinite() const { return rush::isfinite(*this); }
Tensor Tensor::signbit() const { return rush::signbit(*this); }
Tensor Tensor::isposinf() const { return rush::isposinf(*this); }
Tensor Tensor::isneginf() const { return rush::isneginf(*this); }
Tensor Tensor::isreal() const { return rush::isreal(*this); }
Tensor Tensor::heaviside(const Tensor& values) const { return rush::heaviside(*this, values); }
Tensor Tensor::heaviside_(const Tensor& values) const { return write<0>(rush::heaviside, *this, values); }
Tensor Tensor::nan_to_num(OptDouble nan, OptDouble posinf, OptDouble neginf) const {
  return rush::nan_to_num(*this, nan, posinf, neginf);
}
Tensor Tensor::nan_to_num_(OptDouble nan, OptDouble posinf, OptDouble neginf) const {
  return write<0>(rush::nan_to_num, *this, nan, posinf, neginf);
}

// random
Tensor Tensor::bernoulli(Generator* generator) const { return rush::bernoulli(*this, generator); }
Tensor Tensor::bernoulli(double p, Generator* generator) const { return rush::bernoulli(*this, p, generator); }
Tensor Tensor::multinomial(int64_t num_samples, bool replacement, Generator* generator) const {
  return rush::multinomial(*this, num_samples, replacement, generator);
}
Tensor Tensor::uniform_(double from_, double to, Generator* generator) const {
  return write<0>(rush::uniform, *this, from_, to, generator);
}
Tensor Tensor::log_normal_(double mean, double std, Generator* generator) const {
  return write<0>(rush::log_normal, *this, mean, std, generator);
}
Tensor Tensor::exponential_(double lambd, Generator* generator) const {
  return write<0>(rush::exponential, *this, lambd, generator);
}
Tensor Tensor::cauchy_(double median, double sigma, Generator* generator) const {
  return write<0>(rush::cauchy, *this, median, sigma, generator);
}
Tensor Tensor::geometric_(double p, Generator* generator) const {
  return write<0>(rush::geometric, *this, p, generator);
}
Tensor Tensor::normal_(double mean, double std, Generator* generator) const {
  return rush::normal_(*this, mean, std, generator);
}
Tensor Tensor::bernoulli_(const Tensor& p, Generator* generator) const { return rush::bernoulli_(*this, p, generator); }
Tensor Tensor::bernoulli_(double p, Generator* generator) const { return rush::bernoulli_(*this, p, generator); }
Tensor Tensor::random_(Generator* generator) const { return rush::random_(*this, generator); }
Tensor Tensor::random_(int64_t to, Generator* generator) const { return rush::random_(*this, to, generator); }
Tensor Tensor::random_(int64_t from_, OptInt to, Generator* generator) const {
  return rush::random_(*this, from_, to, generator);
}

// reductions
Tensor Tensor::sum(OptDType dtype) const { return rush::sum(*this, dtype); }
Tensor Tensor::sum(Ints dim, bool keepdim, OptDType dtype) const { return rush::sum(*this, dim, keepdim, dtype); }
Tensor Tensor::sum_to_size(Ints size) const { return rush::sum_to_size(*this, size); }
Tensor Tensor::nansum(OptInts dim, bool keepdim, OptDType dtype) const {
  return rush::nansum(*this, dim, keepdim, dtype);
}
Tensor Tensor::mean(OptDType dtype) const { return rush::mean(*this, dtype); }
Tensor Tensor::mean(Ints dim, bool keepdim, OptDType dtype) const { return rush::mean(*this, dim, keepdim, dtype); }
Tensor Tensor::nanmean(OptInts dim, bool keepdim, OptDType dtype) const {
  return rush::nanmean(*this, dim, keepdim, dtype);
}
Tensor Tensor::prod(OptDType dtype) const { return rush::prod(*this, dtype); }
Tensor Tensor::prod(int64_t dim, bool keepdim, OptDType dtype) const { return rush::prod(*this, dim, keepdim, dtype); }
Tensor Tensor::max() const { return rush::max(*this); }
std::array<Tensor, 2> Tensor::max(int64_t dim, bool keepdim) const { return rush::max(*this, dim, keepdim); }
Tensor Tensor::max(const Tensor& other) const { return rush::max(*this, other); }
Tensor Tensor::min() const { return rush::min(*this); }
std::array<Tensor, 2> Tensor::min(int64_t dim, bool keepdim) const { return rush::min(*this, dim, keepdim); }
Tensor Tensor::min(const Tensor& other) const { return rush::min(*this, other); }
Tensor Tensor::amax(Ints dim, bool keepdim) const { return rush::amax(*this, dim, keepdim); }
Tensor Tensor::amin(Ints dim, bool keepdim) const { return rush::amin(*this, dim, keepdim); }
std::array<Tensor, 2> Tensor::aminmax(OptInt dim, bool keepdim) const { return rush::aminmax(*this, dim, keepdim); }
Tensor Tensor::argmax(OptInt dim, bool keepdim) const { return rush::argmax(*this, dim, keepdim); }
Tensor Tensor::argmin(OptInt dim, bool keepdim) const { return rush::argmin(*this, dim, keepdim); }
Tensor Tensor::all() const { return rush::all(*this); }
Tensor Tensor::all(Ints dim, bool keepdim) const { return rush::all(*this, dim, keepdim); }
Tensor Tensor::any() const { return rush::any(*this); }
Tensor Tensor::any(Ints dim, bool keepdim) const { return rush::any(*this, dim, keepdim); }
Tensor Tensor::count_nonzero(OptInts dim) const { return rush::count_nonzero(*this, dim); }
Tensor Tensor::var(bool unbiased) const { return rush::var(*this, unbiased); }
Tensor Tensor::var(Ints dim, bool unbiased, bool keepdim) const { return rush::var(*this, dim, unbiased, keepdim); }
Tensor Tensor::var(OptInts dim, OptScalar correction, bool keepdim) const {
  return rush::var(*this, dim, correction, keepdim);
}
Tensor Tensor::std(bool unbiased) const { return rush::std(*this, unbiased); }
Tensor Tensor::std(Ints dim, bool unbiased, bool keepdim) const { return rush::std(*this, dim, unbiased, keepdim); }
Tensor Tensor::std(OptInts dim, OptScalar correction, bool keepdim) const {
  return rush::std(*this, dim, correction, keepdim);
}
Tensor Tensor::norm(OptScalar p, OptInts dim, bool keepdim, OptDType dtype) const {
  return rush::norm(*this, p, dim, keepdim, dtype);
}
Tensor Tensor::norm(std::string_view p, OptInts dim, bool keepdim, OptDType dtype) const {
  return rush::norm(*this, p, dim, keepdim, dtype);
}
Tensor Tensor::logsumexp(Ints dim, bool keepdim) const { return rush::logsumexp(*this, dim, keepdim); }
Tensor Tensor::dist(const Tensor& other, const Scalar& p) const { return rush::dist(*this, other, p); }
Tensor Tensor::renorm(const Scalar& p, int64_t dim, const Scalar& maxnorm) const {
  return rush::renorm(*this, p, dim, maxnorm);
}
Tensor Tensor::renorm_(const Scalar& p, int64_t dim, const Scalar& maxnorm) const {
  return write<0>(rush::renorm, *this, p, dim, maxnorm);
}
Tensor Tensor::median() const { return rush::median(*this); }
std::array<Tensor, 2> Tensor::median(int64_t dim, bool keepdim) const { return rush::median(*this, dim, keepdim); }
Tensor Tensor::nanmedian() const { return rush::nanmedian(*this); }
std::array<Tensor, 2> Tensor::nanmedian(int64_t dim, bool keepdim) const {
  return rush::nanmedian(*this, dim, keepdim);
}
std::array<Tensor, 2> Tensor::mode(int64_t dim, bool keepdim) const { return rush::mode(*this, dim, keepdim); }
std::array<Tensor, 2> Tensor::kthvalue(int64_t k, int64_t dim, bool keepdim) const {
  return rush::kthvalue(*this, k, dim, keepdim);
}
Tensor Tensor::quantile(const Tensor& q, OptInt dim, bool keepdim, std::string_view interpolation) const {
  return rush::quantile(*this, q, dim, keepdim, interpolation);
}
Tensor Tensor::nanquantile(const Tensor& q, OptInt dim, bool keepdim, std::string_view interpolation) const {
  return rush::nanquantile(*this, q, dim, keepdim, interpolation);
}
Tensor Tensor::cov(int64_t correction, const Tensor& fweights, const Tensor& aweights) const {
  return rush::cov(*this, correction, fweights, aweights);
}
Tensor Tensor::corrcoef() const { return rush::corrcoef(*this); }
Tensor Tensor::histc(int64_t bins, const Scalar& min, const Scalar& max) const {
  return rush::histc(*this, bins, min, max);
}
Tensor Tensor::bincount(const Tensor& weights, int64_t minlength) const {
  return rush::bincount(*this, weights, minlength);
}
bool Tensor::equal(const Tensor& other) const { return rush::equal(*this, other); }
Tensor Tensor::isclose(const Tensor& other, double rtol, double atol, bool equal_nan) const {
  return rush::isclose(*this, other, rtol, atol, equal_nan);
}
bool Tensor::allclose(const Tensor& other, double rtol, double atol, bool equal_nan) const {
  return rush::allclose(*this, other, rtol, atol, equal_nan);
}

// scans
Tensor Tensor::cumsum(int64_t dim, OptDType dtype) const { return rush::cumsum(*this, dim, dtype); }
Tensor Tensor::cumsum_(int64_t dim, OptDType dtype) const { return write<0>(rush::cumsum, *this, dim, dtype); }
Tensor Tensor::cumprod(int64_t dim, OptDType dtype) const { return rush::cumprod(*this, dim, dtype); }
Tensor Tensor::cumprod_(int64_t dim, OptDType dtype) const { return write<0>(rush::cumprod, *this, dim, dtype); }
std::array<Tensor, 2> Tensor::cummax(int64_t dim) const { return rush::cummax(*this, dim); }
std::array<Tensor, 2> Tensor::cummin(int64_t dim) const { return rush::cummin(*this, dim); }
Tensor Tensor::logcumsumexp(int64_t dim) const { return rush::logcumsumexp(*this, dim); }
Tensor Tensor::diff(int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) const {
  return rush::diff(*this, n, dim, prepend, append);
}

// softmax
Tensor Tensor::softmax(int64_t dim, OptDType dtype) const { return rush::softmax(*this, dim, dtype); }
Tensor Tensor::log_softmax(int64_t dim, OptDType dtype) const { return rush::log_softmax(*this, dim, dtype); }

// sorting
std::array<Tensor, 2> Tensor::sort(int64_t dim, bool descending) const { return rush::sort(*this, dim, descending); }
std::array<Tensor, 2> Tensor::sort(OptBool stable, int64_t dim, bool descending) const {
  return rush::sort(*this, stable, dim, descending);
}
Tensor Tensor::argsort(int64_t dim, bool descending) const { return rush::argsort(*this, dim, descending); }
Tensor Tensor::argsort(bool stable, int64_t dim, bool descending) const {
  return rush::argsort(*this, stable, dim, descending);
}
Tensor Tensor::msort() const { return rush::msort(*this); }
std::array<Tensor, 2> Tensor::topk(int64_t k, int64_t dim, bool largest, bool sorted) const {
  return rush::topk(*this, k, dim, largest, sorted);
}
std::array<Tensor, 2> Tensor::histogram(int64_t bins, std::optional<std::span<const double>> range,
                                        const Tensor& weight, bool density) const {
  return rush::histogram(*this, bins, range, weight, density);
}
std::array<Tensor, 2> Tensor::histogram(const Tensor& bins, const Tensor& weight, bool density) const {
  return rush::histogram(*this, bins, weight, density);
}

// special
Tensor Tensor::erfinv() const { return rush::erfinv(*this); }
Tensor Tensor::erfinv_() const { return write<0>(rush::erfinv, *this); }
Tensor Tensor::lgamma() const { return rush::lgamma(*this); }
Tensor Tensor::lgamma_() const { return write<0>(rush::lgamma, *this); }
Tensor Tensor::digamma() const { return rush::digamma(*this); }
Tensor Tensor::digamma_() const { return write<0>(rush::digamma, *this); }
Tensor Tensor::i0() const { return rush::i0(*this); }
Tensor Tensor::i0_() const { return write<0>(rush::i0, *this); }
Tensor Tensor::special_erfinv() const { return rush::special_erfinv(*this); }
Tensor Tensor::special_gammaln() const { return rush::special_gammaln(*this); }
Tensor Tensor::special_psi() const { return rush::special_psi(*this); }
Tensor Tensor::special_digamma() const { return rush::special_digamma(*this); }
Tensor Tensor::special_i0() const { return rush::special_i0(*this); }
Tensor Tensor::special_sinc() const { return rush::special_sinc(*this); }
Tensor Tensor::sinc() const { return rush::sinc(*this); }
Tensor Tensor::sinc_() const { return write<0>(rush::sinc, *this); }
Tensor Tensor::special_i1() const { return rush::special_i1(*this); }
Tensor Tensor::special_i1_() const { return write<0>(rush::special_i1, *this); }
Tensor Tensor::special_i0e() const { return rush::special_i0e(*this); }
Tensor Tensor::special_i0e_() const { return write<0>(rush::special_i0e, *this); }
Tensor Tensor::special_i1e() const { return rush::special_i1e(*this); }
Tensor Tensor::special_i1e_() const { return write<0>(rush::special_i1e, *this); }
Tensor Tensor::special_ndtr() const { return rush::special_ndtr(*this); }
Tensor Tensor::special_ndtr_() const { return write<0>(rush::special_ndtr, *this); }
Tensor Tensor::special_ndtri() const { return rush::special_ndtri(*this); }
Tensor Tensor::special_ndtri_() const { return write<0>(rush::special_ndtri, *this); }
Tensor Tensor::special_log_ndtr() const { return rush::special_log_ndtr(*this); }
Tensor Tensor::special_log_ndtr_() const { return write<0>(rush::special_log_ndtr, *this); }
Tensor Tensor::special_erfcx() const { return rush::special_erfcx(*this); }
Tensor Tensor::special_erfcx_() const { return write<0>(rush::special_erfcx, *this); }
Tensor Tensor::special_entr() const { return rush::special_entr(*this); }
Tensor Tensor::special_entr_() const { return write<0>(rush::special_entr, *this); }
Tensor Tensor::special_airy_ai() const { return rush::special_airy_ai(*this); }
Tensor Tensor::special_airy_ai_() const { return write<0>(rush::special_airy_ai, *this); }
Tensor Tensor::special_bessel_j0() const { return rush::special_bessel_j0(*this); }
Tensor Tensor::special_bessel_j0_() const { return write<0>(rush::special_bessel_j0, *this); }
Tensor Tensor::special_bessel_j1() const { return rush::special_bessel_j1(*this); }
Tensor Tensor::special_bessel_j1_() const { return write<0>(rush::special_bessel_j1, *this); }
Tensor Tensor::special_bessel_y0() const { return rush::special_bessel_y0(*this); }
Tensor Tensor::special_bessel_y0_() const { return write<0>(rush::special_bessel_y0, *this); }
Tensor Tensor::special_bessel_y1() const { return rush::special_bessel_y1(*this); }
Tensor Tensor::special_bessel_y1_() const { return write<0>(rush::special_bessel_y1, *this); }
Tensor Tensor::special_modified_bessel_i0() const { return rush::special_modified_bessel_i0(*this); }
Tensor Tensor::special_modified_bessel_i0_() const { return write<0>(rush::special_modified_bessel_i0, *this); }
Tensor Tensor::special_modified_bessel_i1() const { return rush::special_modified_bessel_i1(*this); }
Tensor Tensor::special_modified_bessel_i1_() const { return write<0>(rush::special_modified_bessel_i1, *this); }
Tensor Tensor::special_modified_bessel_k0() const { return rush::special_modified_bessel_k0(*this); }
Tensor Tensor::special_modified_bessel_k0_() const { return write<0>(rush::special_modified_bessel_k0, *this); }
Tensor Tensor::special_modified_bessel_k1() const { return rush::special_modified_bessel_k1(*this); }
Tensor Tensor::special_modified_bessel_k1_() const { return write<0>(rush::special_modified_bessel_k1, *this); }
Tensor Tensor::special_scaled_modified_bessel_k0() const { return rush::special_scaled_modified_bessel_k0(*this); }
Tensor Tensor::special_scaled_modified_bessel_k0_() const {
  return write<0>(rush::special_scaled_modified_bessel_k0, *this);
}
Tensor Tensor::special_scaled_modified_bessel_k1() const { return rush::special_scaled_modified_bessel_k1(*this); }
Tensor Tensor::special_scaled_modified_bessel_k1_() const {
  return write<0>(rush::special_scaled_modified_bessel_k1, *this);
}
Tensor Tensor::special_spherical_bessel_j0() const { return rush::special_spherical_bessel_j0(*this); }
Tensor Tensor::special_spherical_bessel_j0_() const { return write<0>(rush::special_spherical_bessel_j0, *this); }
Tensor Tensor::special_zeta(const Tensor& other) const { return rush::special_zeta(*this, other); }
Tensor Tensor::special_zeta_(const Tensor& other) const { return write<0>(rush::special_zeta, *this, other); }
Tensor Tensor::igamma(const Tensor& other) const { return rush::igamma(*this, other); }
Tensor Tensor::igamma_(const Tensor& other) const { return write<0>(rush::igamma, *this, other); }
Tensor Tensor::igammac(const Tensor& other) const { return rush::igammac(*this, other); }
Tensor Tensor::igammac_(const Tensor& other) const { return write<0>(rush::igammac, *this, other); }
Tensor Tensor::special_gammainc(const Tensor& other) const { return rush::special_gammainc(*this, other); }
Tensor Tensor::special_gammaincc(const Tensor& other) const { return rush::special_gammaincc(*this, other); }
Tensor Tensor::mvlgamma(int64_t p) const { return rush::mvlgamma(*this, p); }
Tensor Tensor::mvlgamma_(int64_t p) const { return write<0>(rush::mvlgamma, *this, p); }
Tensor Tensor::special_multigammaln(int64_t p) const { return rush::special_multigammaln(*this, p); }

// views
Tensor Tensor::as_strided(Ints size, Ints stride, OptInt storage_offset) const {
  return rush::as_strided(*this, size, stride, storage_offset);
}
Tensor Tensor::as_strided_(Ints size, Ints stride, OptInt storage_offset) const {
  return write<0>(rush::as_strided, *this, size, stride, storage_offset);
}
Tensor Tensor::view(Ints size) const { return rush::view(*this, size); }
Tensor Tensor::view(DType dtype) const { return rush::view(*this, dtype); }
Tensor Tensor::reshape(Ints shape) const { return rush::reshape(*this, shape); }
Tensor Tensor::expand(Ints size, bool implicit) const { return rush::expand(*this, size, implicit); }
Tensor Tensor::permute(Ints dims) const { return rush::permute(*this, dims); }
Tensor Tensor::transpose(int64_t dim0, int64_t dim1) const { return rush::transpose(*this, dim0, dim1); }
Tensor Tensor::transpose_(int64_t dim0, int64_t dim1) const { return write<0>(rush::transpose, *this, dim0, dim1); }
Tensor Tensor::t() const { return rush::t(*this); }
Tensor Tensor::t_() const { return write<0>(rush::t, *this); }
Tensor Tensor::select(int64_t dim, int64_t index) const { return rush::select(*this, dim, index); }
Tensor Tensor::narrow(int64_t dim, int64_t start, int64_t length) const {
  return rush::narrow(*this, dim, start, length);
}
Tensor Tensor::narrow(int64_t dim, const Tensor& start, int64_t length) const {
  return rush::narrow(*this, dim, start, length);
}
Tensor Tensor::squeeze() const { return rush::squeeze(*this); }
Tensor Tensor::squeeze_() const { return write<0>(rush::squeeze, *this); }
Tensor Tensor::squeeze(Ints dim) const { return rush::squeeze(*this, dim); }
Tensor Tensor::squeeze_(Ints dim) const { return write<1>(rush::squeeze, *this, dim); }
Tensor Tensor::unsqueeze(int64_t dim) const { return rush::unsqueeze(*this, dim); }
Tensor Tensor::unsqueeze_(int64_t dim) const { return write<0>(rush::unsqueeze, *this, dim); }
Tensor Tensor::detach_() const { return write<0>(rush::detach, *this); }
Tensor Tensor::real() const { return rush::real(*this); }
Tensor Tensor::imag() const { return rush::imag(*this); }
Tensor Tensor::view_as_real() const { return rush::view_as_real(*this); }
Tensor Tensor::view_as_complex() const { return rush::view_as_complex(*this); }

// linalg
Tensor Tensor::det() const { return rush::det(*this); }
std::array<Tensor, 2> Tensor::slogdet() const { return rush::slogdet(*this); }
Tensor Tensor::logdet() const { return rush::logdet(*this); }
Tensor Tensor::inverse() const { return rush::matrix_inverse(*this); }
std::array<Tensor, 2> Tensor::triangular_solve(const Tensor& A, bool upper, bool transpose, bool unitriangular) const {
  return rush::triangular_solve(*this, A, upper, transpose, unitriangular);
}
Tensor Tensor::cholesky(bool upper) const { return rush::cholesky(*this, upper); }
Tensor Tensor::cholesky_solve(const Tensor& L, bool upper) const { return rush::cholesky_solve(*this, L, upper); }
Tensor Tensor::cholesky_inverse(bool upper) const { return rush::cholesky_inverse(*this, upper); }
std::array<Tensor, 2> Tensor::geqrf() const { return rush::geqrf(*this); }
Tensor Tensor::orgqr(const Tensor& input2) const { return rush::orgqr(*this, input2); }
Tensor Tensor::ormqr(const Tensor& tau, const Tensor& other, bool left, bool transpose) const {
  return rush::ormqr(*this, tau, other, left, transpose);
}
Tensor Tensor::lu_solve(const Tensor& LU_data, const Tensor& LU_pivots) const {
  return rush::lu_solve(*this, LU_data, LU_pivots);
}
std::array<Tensor, 3> Tensor::svd(bool some, bool compute_uv) const { return rush::svd(*this, some, compute_uv); }
Tensor Tensor::pinverse(double rcond) const { return rush::pinverse(*this, rcond); }
Tensor Tensor::matrix_power(int64_t n) const { return rush::matrix_power(*this, n); }
Tensor Tensor::matrix_exp() const { return rush::matrix_exp(*this); }

}  // namespace rush
