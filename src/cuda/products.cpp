// Calling the libraries. Their functions are declared here as far as they are used, so that nothing of CUDA is needed
// to build.
#include "cuda/products.h"

#include <cstdlib>
#include <mutex>

#include "cuda/cudnn.h"
#include "cuda/libraries.h"
#include "cuda/runtime.h"
#include "kernels/cpu/gemm.h"
#include "rushlight/cuda.h"

namespace rush::cuda {

std::atomic<bool> products_in_tf32{false};

// ---- the simulator's stand-ins

namespace {

bool stands_in() {
  static const bool on = [] {
    const char* text = std::getenv("RUSHLIGHT_SIM_LIBRARIES");
    return runtime().simulated() && !(text && std::string_view(text) == "0");
  }();
  return on;
}

void* reach(const void* data) { return data ? runtime().reach(data) : nullptr; }

template <class T>
void simulate(const Gemm& g) {
  using C = compute_t<T>;
  const cpu::Strided<const T> a{static_cast<const T*>(g.a.data), g.a.row, g.a.col},
      b{static_cast<const T*>(g.b.data), g.b.row, g.b.col};
  const cpu::Strided<T> c{static_cast<T*>(g.out), g.n, 1};
  if (g.batch == 1)
    cpu::gemm<T>(g.m, g.n, g.k, a, b, c, g.alpha.to<C>(), g.beta.to<C>(), {nullptr, static_cast<const T*>(g.bias)});
  else
    cpu::batched_gemm<T>(g.batch, g.m, g.n, g.k, a, g.a.batch, b, g.b.batch, c, g.m * g.n, g.alpha.to<C>(),
                         g.beta.to<C>());
}

template <class T>
void simulate(ConvolutionPass pass, const cpu::Convolution& conv, void* out, const void* a, const void* b,
              const void* bias) {
  const T *left = static_cast<const T*>(a), *right = static_cast<const T*>(b), *add = static_cast<const T*>(bias);
  T* to = static_cast<T*>(out);
  if (pass == ConvolutionPass::forward)
    cpu::conv_forward<T>(conv, left, right, add, to);
  else if (pass == ConvolutionPass::data)
    cpu::conv_backward_data<T>(conv, left, right, to, add);
  else
    cpu::conv_backward_weight<T>(conv, left, right, to);
}

// ---- cuBLASLt

/// The functions and constants of cublasLt.h that are used.
struct Cublas {
  using Handle = void*;
  int (*create)(Handle*);
  int (*desc_create)(void**, int compute, int scale_type);
  int (*desc_destroy)(void*);
  int (*desc_set)(void*, int attribute, const void* value, size_t bytes);
  int (*layout_create)(void**, int type, uint64_t rows, uint64_t cols, int64_t leading);
  int (*layout_destroy)(void*);
  int (*layout_set)(void*, int attribute, const void* value, size_t bytes);
  int (*preference_create)(void**);
  int (*preference_destroy)(void*);
  int (*preference_set)(void*, int attribute, const void* value, size_t bytes);
  struct Heuristic {
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
  };
  int (*heuristic)(Handle, void* desc, void* a, void* b, void* c, void* d, void* preference, int wanted, Heuristic*,
                   int* found);
  int (*matmul)(Handle, void* desc, const void* alpha, const void* a, void* a_layout, const void* b, void* b_layout,
                const void* beta, const void* c, void* c_layout, void* d, void* d_layout, const void* algorithm,
                void* workspace, size_t workspace_bytes, void* stream);

  static constexpr int kTransA = 3, kTransB = 4, kEpilogue = 7, kBiasPointer = 8;  // of a product
  static constexpr int kEpilogueBias = 4, kTransposed = 1;
  static constexpr int kBatchCount = 5, kBatchOffset = 6;  // of a layout
  static constexpr int kWorkspaceBytes = 1;                // of a preference
  static constexpr int kReal32 = 0, kReal64 = 1, kReal16 = 2, kBrain16 = 14, kCompute32 = 68, kCompute64 = 70,
                       kComputeTf32 = 77;

  /// Null if the library or one of these is not there.
  static const Cublas* get() {
    static const Cublas* const found = []() -> const Cublas* {
      const Library& library = find_library("libcublasLt");
      static Cublas c;
      const auto load = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(find_symbol(library, name));
        return function != nullptr;
      };
      const bool all = load(c.create, "cublasLtCreate") && load(c.desc_create, "cublasLtMatmulDescCreate") &&
                       load(c.desc_destroy, "cublasLtMatmulDescDestroy") &&
                       load(c.desc_set, "cublasLtMatmulDescSetAttribute") &&
                       load(c.layout_create, "cublasLtMatrixLayoutCreate") &&
                       load(c.layout_destroy, "cublasLtMatrixLayoutDestroy") &&
                       load(c.layout_set, "cublasLtMatrixLayoutSetAttribute") &&
                       load(c.preference_create, "cublasLtMatmulPreferenceCreate") &&
                       load(c.preference_destroy, "cublasLtMatmulPreferenceDestroy") &&
                       load(c.preference_set, "cublasLtMatmulPreferenceSetAttribute") &&
                       load(c.heuristic, "cublasLtMatmulAlgoGetHeuristic") && load(c.matmul, "cublasLtMatmul");
      return all ? &c : nullptr;
    }();
    return found;
  }
};

/// A description with its destructor.
struct Owned {
  void* object = nullptr;
  int (*destroy)(void*);
  explicit Owned(int (*d)(void*)) : destroy(d) {}
  ~Owned() {
    if (object) destroy(object);
  }
  Owned(const Owned&) = delete;
};

constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;

bool cublas_gemm(int device, const Gemm& g) {
  const bool half = is_half(g.dtype);
  if (!half && g.dtype != kFloat32 && g.dtype != kFloat64) return false;
  if (g.k == 0 || (g.bias && g.batch != 1)) return false;
  // Row-major c = a b is column-major c' = b' a'. An operand is usable if one of its strides is 1.
  struct Side {
    bool transposed;
    int64_t leading;
  };
  const auto side = [](const GemmOperand& x, int64_t rows, int64_t cols, Side& to) {
    if (x.col == 1 && (x.row >= cols || rows == 1)) return to = {false, std::max(x.row, cols)}, true;
    if (x.row == 1 && (x.col >= rows || cols == 1)) return to = {true, std::max(x.col, rows)}, true;
    return false;
  };
  Side a, b;
  if (!side(g.a, g.m, g.k, a) || !side(g.b, g.k, g.n, b)) return false;
  const Cublas* lib = Cublas::get();
  if (!lib) return false;
  runtime().make_current(device);
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  static std::vector<Cublas::Handle> handles;
  if (handles.size() <= size_t(device)) handles.resize(size_t(device) + 1);
  if (!handles[size_t(device)] && lib->create(&handles[size_t(device)]) != 0) return false;

  const int type = g.dtype == kFloat16    ? Cublas::kReal16
                   : g.dtype == kBFloat16 ? Cublas::kBrain16
                   : g.dtype == kFloat64  ? Cublas::kReal64
                                          : Cublas::kReal32;
  const bool wide = g.dtype == kFloat64;
  const int compute = wide                                             ? Cublas::kCompute64
                      : g.dtype == kFloat32 && products_in_tf32.load() ? Cublas::kComputeTf32
                                                                       : Cublas::kCompute32;
  Owned desc(lib->desc_destroy), left(lib->layout_destroy), right(lib->layout_destroy), result(lib->layout_destroy),
      preference(lib->preference_destroy);
  const auto ok = [](int status) { return status == 0; };
  const auto layout = [&](Owned& to, const Side& s, int64_t rows, int64_t cols, int64_t batch) {
    const int32_t count = int32_t(g.batch);
    const auto [r, c] = s.transposed ? std::pair(rows, cols) : std::pair(cols, rows);  // as columns lie
    return ok(lib->layout_create(&to.object, type, uint64_t(r), uint64_t(c), s.leading)) &&
           (g.batch == 1 || (ok(lib->layout_set(to.object, Cublas::kBatchCount, &count, sizeof count)) &&
                             ok(lib->layout_set(to.object, Cublas::kBatchOffset, &batch, sizeof batch))));
  };
  const int32_t trans_b = b.transposed ? Cublas::kTransposed : 0, trans_a = a.transposed ? Cublas::kTransposed : 0;
  bool ready = ok(lib->desc_create(&desc.object, compute, wide ? Cublas::kReal64 : Cublas::kReal32)) &&
               ok(lib->desc_set(desc.object, Cublas::kTransA, &trans_b, sizeof trans_b)) &&
               ok(lib->desc_set(desc.object, Cublas::kTransB, &trans_a, sizeof trans_a)) &&
               layout(left, b, g.k, g.n, g.b.batch) && layout(right, a, g.m, g.k, g.a.batch) &&
               layout(result, {false, g.n}, g.m, g.n, g.m * g.n) && ok(lib->preference_create(&preference.object));
  if (ready && g.bias) {
    const int32_t epilogue = Cublas::kEpilogueBias;
    ready = ok(lib->desc_set(desc.object, Cublas::kEpilogue, &epilogue, sizeof epilogue)) &&
            ok(lib->desc_set(desc.object, Cublas::kBiasPointer, &g.bias, sizeof g.bias));
  }
  if (!ready) return false;
  const size_t bytes = size_t(kWorkspaceBytes);
  lib->preference_set(preference.object, Cublas::kWorkspaceBytes, &bytes, sizeof bytes);
  Cublas::Heuristic best{};
  int found = 0;
  if (!ok(lib->heuristic(handles[size_t(device)], desc.object, left.object, right.object, result.object, result.object,
                         preference.object, 1, &best, &found)) ||
      found == 0)
    return false;
  Tensor workspace;
  if (best.workspace > 0)
    workspace = allocate({{int64_t(best.workspace)}, kUInt8, Device(DeviceType::CUDA, device), {}});
  const double alpha = g.alpha.to_double(), beta = g.beta.to_double();
  const float short_alpha = float(alpha), short_beta = float(beta);
  const void* const scales[] = {wide ? static_cast<const void*>(&alpha) : &short_alpha,
                                wide ? static_cast<const void*>(&beta) : &short_beta};
  return ok(lib->matmul(handles[size_t(device)], desc.object, scales[0], g.b.data, left.object, g.a.data, right.object,
                        scales[1], g.out, result.object, g.out, result.object, best.algorithm,
                        workspace.defined() ? workspace.data_ptr() : nullptr, best.workspace,
                        current_stream(device).handle()));
}

}  // namespace

bool library_gemm(int device, const Gemm& gemm) {
  if (!runtime().simulated()) return cublas_gemm(device, gemm);
  if (!stands_in() || (gemm.bias && gemm.batch != 1)) return false;
  Gemm there = gemm;
  there.a.data = reach(gemm.a.data);
  there.b.data = reach(gemm.b.data);
  there.out = reach(gemm.out);
  there.bias = reach(gemm.bias);
  runtime().call(device, current_stream(device).handle(), [there] {
    for_all(there.dtype, [&]<class T>() {
      if constexpr (!std::is_same_v<T, bool>) simulate<T>(there);
    });
  });
  return true;
}

bool library_convolution(int device, ConvolutionPass pass, const cpu::Convolution& conv, DType dtype, void* out,
                         const void* a, const void* b, const void* bias) {
  if (!runtime().simulated()) return cudnn_convolution(device, pass, conv, dtype, out, a, b, bias);
  if (!stands_in() || !cudnn_settings.enabled) return false;
  runtime().call(device, current_stream(device).handle(),
                 [=, out = reach(out), a = reach(a), b = reach(b), bias = reach(bias)] {
                   for_floating(dtype, [&]<class T>() { simulate<T>(pass, conv, out, a, b, bias); });
                 });
  return true;
}

}  // namespace rush::cuda
