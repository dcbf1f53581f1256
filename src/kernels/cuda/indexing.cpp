// Launches of reading and writing at indices. A mask becomes the list of its true positions first.
#include "kernels/cuda/indexing.cuh"

#include "kernels/cpu/pointwise.h"
#include "kernels/cuda/fold.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/tensors.h"

namespace rush::cuda {

namespace {

/// The selection as kernels take it, and the index tensors that it points to.
struct Prepared {
  Selected s{};
  std::vector<Tensor> held;

  Prepared(const Tensor& x, const cpu::Selection& from) {
    s.before = axes_of(from.before, from.before_strides);
    s.after = axes_of(from.after, from.after_strides);
    s.n = product(from.index);
    s.block = product(from.after);
    s.check = index_check(x.device().index);
    s.wrap = from.bounds == cpu::Selection::Bounds::wrap;
    for (const cpu::Selection::Place& p : from.places) {
      if (p.count < 0) {
        add(p.index, p.dim, x, from.index);
        continue;
      }
      Tensor places = allocate_like(x, {p.count, p.index.dim()}, kInt64);
      nonzero(places, on_device_of(x, p.index));
      for (int64_t d = 0; d < p.index.dim(); ++d) add(select(places, 1, d), p.dim + d, x, from.index);
    }
  }
  void add(const Tensor& index, int64_t dim, const Tensor& x, Ints sizes) {
    check(s.count < kMaxIndices, "on a GPU at most ", kMaxIndices, " index tensors are supported");
    held.push_back(contiguous(expand(on_device_of(x, index), sizes)));
    const bool scalar = x.dim() == 0;
    s.places[s.count++] = {array_of(held.back()), scalar ? 1 : x.sizes()[dim], scalar ? 0 : x.strides()[dim], dim};
  }
  static Tensor on_device_of(const Tensor& x, const Tensor& index) {
    if (index.device() == x.device()) return index;
    Tensor moved = allocate_like(x, index.sizes(), index.dtype());
    cpu::copy(moved, index);
    return moved;
  }
};

/// f.operator()<T>() with the type of the elements for arithmetic, or any of their size.
template <class F>
void for_write(DType dtype, Write how, F&& f) {
  check<NotImplementedError>(how == Write::assign || how == Write::add || dtype != kComplex128,
                             "on a GPU not implemented for 'ComplexDouble'");
  if (how == Write::assign) {
    switch (size_of(dtype)) {
      case 1:
        return f.template operator()<uint8_t>();
      case 2:
        return f.template operator()<Half>();
      case 4:
        return f.template operator()<float>();
      case 8:
        return f.template operator()<double>();
      default:
        return f.template operator()<std::complex<double>>();
    }
  }
  for_all(dtype, f);
}

/// Strides of t along the dimensions of `index`.
Along along(const Tensor& index, const Tensor& other, const Tensor& x, int64_t dim) {
  Dims own = x.strides();
  if (!own.empty()) own[dim] = 0;
  const Tensor* const tensors[] = {&index, &other, &x};
  const Dims strides[] = {index.strides(), other.strides(), own};
  return {layout_of(index.sizes(), tensors, strides), x.dim() ? x.sizes()[dim] : 1, x.dim() ? x.strides()[dim] : 0, dim,
          index_check(x.device().index)};
}

}  // namespace

void index(Tensor& out, const Tensor& x, const cpu::Selection& selection) {
  const Prepared p(x, selection);
  for_width(x.dtype(), [&]<class W>() {
    for_each(out.device(), out.numel(), IndexRead<W>{out.data<W>(), x.data<W>(), p.s});
  });
}

void index_put(Tensor& out, const cpu::Selection& selection, const Tensor& values, Write how) {
  const Prepared p(out, selection);
  const bool one = values.numel() == 1;
  Tensor ready = one ? values : contiguous(expand(values.detach(), selection.sizes()));
  if (ready.device() != out.device()) ready = Prepared::on_device_of(out, ready);
  const int64_t n = product(selection.before) * p.s.n * p.s.block;
  for_write(out.dtype(), how, [&]<class T>() {
    for_each(out.device(), n, IndexWrite<T>{out.data<T>(), ready.data<T>(), one ? 0 : 1, how, p.s});
  });
}

void gather_along(Tensor& out, const Tensor& x, int64_t dim, const Tensor& index) {
  for_width(x.dtype(), [&]<class W>() { for_each(out.device(), index.numel(), Gather<W>{along(index, out, x, dim)}); });
}

void scatter_along(Tensor& out, int64_t dim, const Tensor& index, const Tensor& src, Write how) {
  Tensor values = src.dim() == 0 ? expand(src, index.sizes()) : src;
  if (values.device() != out.device()) values = Prepared::on_device_of(out, values);
  for_write(out.dtype(), how, [&]<class T>() {
    for_each(out.device(), index.numel(), Scatter<T>{along(index, values, out, dim), how});
  });
}

void search_sorted(Tensor& out, const Tensor& sorted, const Tensor& values, const Tensor& sorter, bool right) {
  const int64_t n = sorted.dim() ? sorted.sizes().back() : 1, total = values.numel();
  const int64_t row = sorted.dim() > 1 && values.dim() ? values.sizes().back() : std::max<int64_t>(total, 1);
  const auto go = [&]<class T>() {
    for_each(out.device(), total,
             SearchSorted<T>{array_of(out), array_of(sorted), array_of(values), array_of(sorter), n, row, right});
  };
  is_integral(values.dtype()) ? go.template operator()<int64_t>() : go.template operator()<double>();
}

void triangle(Tensor& out, const Tensor& x, int64_t k, bool upper) {
  const Tensor* const tensors[] = {&out, &x};
  const Dims strides[] = {out.strides(), x.strides()};
  for_width(x.dtype(), [&]<class W>() {
    for_each(out.device(), out.numel(), Triangle<W>{layout_of(out.sizes(), tensors, strides), k, upper});
  });
}

int64_t count_nonzero(const Tensor& x) {
  Tensor n = allocate_like(x, {}, kInt64);
  Tensor* const outs[] = {&n};
  Dims all;
  for (int64_t d = 0; d < x.dim(); ++d) all.push_back(d);
  fold(cpu::FoldKind::count, kBool, {}, x, all, outs, 1);
  return n.item<int64_t>();
}

void nonzero(Tensor& out, const Tensor& x) {
  if (x.dim() == 0 || out.numel() == 0) return;
  check(x.dim() <= kLayoutDims, "on a GPU at most ", kLayoutDims, " dimensions are supported");
  const Tensor set = ne(x.detach(), 0);
  Tensor upto = allocate_like(x, {x.numel()}, kInt64);
  cumsum(upto, reshape(set, {x.numel()}), 0);
  Nonzero f{out.data<int64_t>(), upto.data<int64_t>(), x.dim(), {}};
  for (int64_t d = 0; d < x.dim(); ++d) f.sizes[d] = x.sizes()[d];
  for_each(out.device(), x.numel(), f);
}

}  // namespace rush::cuda
