// Subscripts: Python's x[...] and x[...] = v. Integers, slices and None together make one view; tensors and bools are
// then given to index and index_put.
#include "ops/common.h"
#include "ops/fits.h"
#include "rushlight/indexing.h"

namespace rush {

namespace {

/// _basic_index's steps: four numbers each, {what, start, length, step}.
enum Step : int64_t { kSelect, kSlice, kNewAxis };
constexpr size_t kStep = 4, kMaxSteps = 64;

struct Window {
  Dims sizes, strides;
  int64_t offset;
};

Window window(const Tensor& x, Ints steps) {
  Window w{{}, {}, x.storage_offset()};
  size_t d = 0;
  for (size_t i = 0; i < steps.size(); i += kStep) {
    if (steps[i] == kNewAxis) {
      w.sizes.push_back(1);
      w.strides.push_back(d < size_t(x.dim()) ? x.sizes()[d] * x.strides()[d] : 1);
      continue;
    }
    const int64_t stride = x.strides()[d++];
    w.offset += steps[i + 1] * stride;
    if (steps[i] == kSlice) {
      w.sizes.push_back(steps[i + 2]);
      // Where no second element is reached, the stride means nothing and a huge step may overflow it.
      int64_t step;
      w.strides.push_back(__builtin_mul_overflow(steps[i + 3], stride, &step) ? 0 : step);
    }
  }
  for (; d < size_t(x.dim()); ++d) {
    w.sizes.push_back(x.sizes()[d]);
    w.strides.push_back(x.strides()[d]);
  }
  return w;
}

}  // namespace

OP_DEFINE(basic_index){{
    .doc =
        R"(The view that integers, slices and new dimensions in a subscript make together, in one step. ``steps`` holds
four numbers for each of them: what it is (0 an integer, 1 a slice, 2 a new dimension), start, length and step.)",
    .composite =
        [](const Tensor& x, Ints steps) {
          int64_t used = 0;
          check(steps.size() % kStep == 0, "steps has ", steps.size(), " numbers, not a multiple of 4");
          for (size_t i = 0; i < steps.size(); i += kStep) {
            check(steps[i] >= kSelect && steps[i] <= kNewAxis, "unknown step ", steps[i]);
            if (steps[i] == kNewAxis) continue;
            check<IndexError>(used < x.dim(), "too many indices for tensor of dimension ", x.dim());
            const int64_t n = x.sizes()[used++], start = steps[i + 1];
            const int64_t length = steps[i] == kSelect ? 1 : steps[i + 2],
                          step = steps[i] == kSelect ? 1 : steps[i + 3];
            check<IndexError>(start >= 0 && length >= 0 && step > 0 &&
                                  (length == 0 ? start <= n : start < n && length - 1 <= (n - 1 - start) / step),
                              "index ", start, " is out of bounds for dimension ", used - 1, " with size ", n);
          }
          Window w = window(x, steps);
          return alias(x, std::move(w.sizes), std::move(w.strides), w.offset);
        },
    .saves = "self.shape",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& x, Ints steps) {
          Tensor whole = zeros(x.sizes(), g.dtype(), {}, g.device());
          Tensor part = basic_index(whole, steps);
          in_place(copy, part, g);
          return Grads{whole};
        },
    .view = true,
}};

namespace indexing {

namespace {

bool is_mask(const Tensor& t) { return t.dtype() == kBool || t.dtype() == kUInt8; }

/// The subscript read against x: the steps of the view, and the tensors by which that is indexed then.
struct Plan {
  Plan(const Tensor& x, std::span<const Index> indices) : x(x) {
    int64_t specified = 0;
    for (const Index& i : indices) {
      if (i.kind() == Index::Kind::Tensor)
        specified += is_mask(i.tensor()) ? i.tensor().dim() : 1;
      else
        specified += i.kind() == Index::Kind::Int || i.kind() == Index::Kind::Slice;
    }
    if (x.dim() == 0 && specified > 0) {
      for (const Index& i : indices) {
        check<IndexError>(i.kind() != Index::Kind::Slice, "slice() cannot be applied to a 0-dim tensor.");
        check<IndexError>(i.kind() != Index::Kind::Int,
                          "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ "
                          "to convert a 0-dim tensor to a number");
      }
    }
    check<IndexError>(specified <= x.dim(), "too many indices for tensor of dimension ", x.dim());
    bool ellipsis = false;
    for (const Index& i : indices) {
      switch (i.kind()) {
        case Index::Kind::Int:
          select(i.integer());
          break;
        case Index::Kind::Slice:
          slice(i.slice());
          break;
        case Index::Kind::None:
          add(kNewAxis, 0, 1, 1);
          skip(1);
          break;
        case Index::Kind::Ellipsis:
          if (!std::exchange(ellipsis, true)) whole(x.dim() - specified);
          break;
        case Index::Kind::Bool:
          truth(i.integer() != 0);
          break;
        case Index::Kind::Tensor:
          tensor(i.tensor());
          break;
      }
    }
    while (!tensors.empty() && !tensors.back().defined()) tensors.resize(tensors.size() - 1);
  }

  Tensor view() const { return basic_index(x, plain == count ? Ints() : Ints(steps, kStep * count)); }
  /// The view to index or write to; x itself where that is all of it.
  Tensor target() const { return plain == count ? x : view(); }

  const Tensor& x;
  SmallVector<Tensor, 4> tensors;  // one for each dimension of the view (a mask takes several), to the last defined

 private:
  void add(Step what, int64_t start, int64_t length, int64_t step) {
    check<IndexError>(count < kMaxSteps, "too many indices: more than ", kMaxSteps);
    const int64_t values[kStep] = {what, start, length, step};
    std::copy_n(values, kStep, steps + kStep * count++);
  }
  void skip(int64_t n) { tensors.resize(tensors.size() + size_t(n)); }
  void whole(int64_t n) {
    for (int64_t k = 0; k < n; ++k, ++dim) add(kSlice, 0, x.sizes()[dim], 1);
    skip(n);
    plain += size_t(n);
  }
  void select(int64_t i) {
    const int64_t n = x.sizes()[dim];
    check<IndexError>(i >= -n && i < n, "index ", i, " is out of bounds for dimension ", dim, " with size ", n);
    add(kSelect, i < 0 ? i + n : i, 1, 1);
    ++dim;
  }
  void slice(const Slice& s) {
    const int64_t n = x.sizes()[dim], step = s.step.value_or(1);
    check<ValueError>(step != 0, "slice step cannot be zero");
    check<ValueError>(step > 0, "step must be greater than zero");
    const auto bound = [n](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
    const int64_t start = bound(s.start.value_or(0)), stop = std::max(start, bound(s.stop.value_or(n)));
    const int64_t length = stop == start ? 0 : (stop - start - 1) / step + 1;
    add(kSlice, start, length, step);
    ++dim;
    skip(1);
    plain += start == 0 && length == n && step == 1;
  }
  void truth(bool value) {
    add(kNewAxis, 0, 1, 1);
    tensors.push_back(zeros({value ? 1 : 0}, kInt64));
  }
  void tensor(const Tensor& t) {
    if (t.dim() == 0 && is_mask(t)) return truth(t.item<bool>());
    if (t.dim() == 0 && is_integral(t.dtype())) return select(t.item<int64_t>());
    check<IndexError>(t.dtype() == kInt64 || t.dtype() == kInt32 || is_mask(t),
                      "tensors used as indices must be long, int, byte or bool tensors");
    const int64_t n = is_mask(t) ? t.dim() : 1;
    for (int64_t k = 0; k < n; ++k, ++dim) add(kSlice, 0, x.sizes()[dim], 1);
    plain += size_t(n);
    tensors.push_back(t);
  }

  int64_t dim = 0;   // of x, the next one to index
  size_t count = 0;  // of steps
  size_t plain = 0;  // steps that leave their dimension as it is
  int64_t steps[kStep * kMaxSteps];
};

}  // namespace

Tensor get(const Tensor& x, std::span<const Index> indices) {
  const Plan plan(x, indices);
  if (plan.tensors.empty()) return plan.view();
  return index(plan.target(), Tensors(plan.tensors.data(), plan.tensors.size()));
}

void set(const Tensor& x, std::span<const Index> indices, const Tensor& given) {
  if (indices.size() == 1 && indices[0].kind() == Index::Kind::Bool && indices[0].integer() == 0) return;
  const Plan plan(x, indices);
  Tensor target = plan.target(), value = given;
  if (value.dim() > 0 && value.sizes()[0] == 1) {  // leading dimensions of size 1 are no obstacle
    size_t ones = 0;
    while (ones < value.sizes().size() && value.sizes()[ones] == 1) ++ones;
    value = view(value, Ints(value.sizes()).slice(ones, value.sizes().size() - ones));
  }
  if (plan.tensors.empty()) {
    if (value.impl()->wrapped_number && !value.requires_grad())
      in_place(fill, target, value);
    else
      in_place(copy, target, value);
    return;
  }
  if (value.impl()->wrapped_number) {
    check_fits(value, target.dtype());
    value = cast(value, target.dtype());
  }
  in_place(index_put, target, Tensors(plan.tensors.data(), plan.tensors.size()), value);
}

}  // namespace indexing

}  // namespace rush
