// Convolutions by cuDNN. Its functions are declared here as far as they are used: the three passes have functions of
// the same shape, (handle, operand, operand, convolution, result, ...).
#include "cuda/cudnn.h"

#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "cuda/libraries.h"
#include "cuda/runtime.h"
#include "rushlight/cuda.h"

namespace rush::cuda {

CudnnSettings cudnn_settings;

namespace {

/// What cuDNN tells of an algorithm.
struct Performance {
  int algorithm, status;
  float time;
  size_t memory;
  int determinism, math, reserved[3];
};

struct Cudnn {
  using Handle = void*;
  using Descriptor = void*;
  struct Pass {
    int (*heuristic)(Handle, Descriptor, Descriptor, Descriptor, Descriptor, int wanted, int* found, Performance*);
    int (*measure)(Handle, Descriptor, const void*, Descriptor, const void*, Descriptor, Descriptor, void*, int wanted,
                   int* found, Performance*, void* workspace, size_t workspace_bytes);
    int (*workspace)(Handle, Descriptor, Descriptor, Descriptor, Descriptor, int algorithm, size_t* bytes);
    int (*run)(Handle, const void* alpha, Descriptor, const void*, Descriptor, const void*, Descriptor, int algorithm,
               void* workspace, size_t workspace_bytes, const void* beta, Descriptor, void*);
  };
  size_t (*version)();
  int (*create)(Handle*);
  int (*set_stream)(Handle, void*);
  int (*create_tensor)(Descriptor*);
  int (*destroy_tensor)(Descriptor);
  int (*set_tensor)(Descriptor, int type, int dims, const int* sizes, const int* strides);
  int (*create_filter)(Descriptor*);
  int (*destroy_filter)(Descriptor);
  int (*set_filter)(Descriptor, int type, int format, int dims, const int* sizes);
  int (*create_convolution)(Descriptor*);
  int (*destroy_convolution)(Descriptor);
  int (*set_convolution)(Descriptor, int dims, const int* padding, const int* stride, const int* dilation, int mode,
                         int compute_type);
  int (*set_groups)(Descriptor, int groups);
  int (*set_math)(Descriptor, int math);
  int (*add)(Handle, const void* alpha, Descriptor, const void*, const void* beta, Descriptor, void*);
  Pass passes[3];  // by ConvolutionPass

  static constexpr int kFloat = 0, kDouble = 1, kHalf = 2, kBFloat = 9;
  static constexpr int kPlain = 0, kCorrelation = 1, kDeterministic = 1;
  static constexpr int kDefaultMath = 0, kTensorMath = 1, kFmaMath = 3;

  /// Null if the library or a function is not there.
  static const Cudnn* get() {
    static const Cudnn* const found = []() -> const Cudnn* {
      const Library& library = find_library("libcudnn");
      static Cudnn c;
      const auto load = [&](auto& function, const std::string& name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
            find_symbol(library, ("cudnn" + name).c_str()));
        return function != nullptr;
      };
      bool all = load(c.version, "GetVersion") && load(c.create, "Create") && load(c.set_stream, "SetStream") &&
                 load(c.create_tensor, "CreateTensorDescriptor") && load(c.destroy_tensor, "DestroyTensorDescriptor") &&
                 load(c.set_tensor, "SetTensorNdDescriptor") && load(c.create_filter, "CreateFilterDescriptor") &&
                 load(c.destroy_filter, "DestroyFilterDescriptor") && load(c.set_filter, "SetFilterNdDescriptor") &&
                 load(c.create_convolution, "CreateConvolutionDescriptor") &&
                 load(c.destroy_convolution, "DestroyConvolutionDescriptor") &&
                 load(c.set_convolution, "SetConvolutionNdDescriptor") &&
                 load(c.set_groups, "SetConvolutionGroupCount") && load(c.set_math, "SetConvolutionMathType") &&
                 load(c.add, "AddTensor");
      const std::string names[] = {"Forward", "BackwardData", "BackwardFilter"};
      for (int i = 0; i < 3; ++i) {
        Pass& p = c.passes[i];
        all = all && load(p.heuristic, "GetConvolution" + names[i] + "Algorithm_v7") &&
              load(p.measure, "FindConvolution" + names[i] + "AlgorithmEx") &&
              load(p.workspace, "GetConvolution" + names[i] + "WorkspaceSize") && load(p.run, "Convolution" + names[i]);
      }
      return all ? &c : nullptr;
    }();
    return found;
  }
};

/// A descriptor with its destructor.
class Owned {
 public:
  Owned(int (*create)(Cudnn::Descriptor*), int (*destroy)(Cudnn::Descriptor)) : destroy_(destroy) {
    made_ = create(&descriptor_) == 0;
  }
  ~Owned() {
    if (made_) destroy_(descriptor_);
  }
  Owned(const Owned&) = delete;
  explicit operator bool() const { return made_; }
  operator Cudnn::Descriptor() const { return descriptor_; }

 private:
  Cudnn::Descriptor descriptor_ = nullptr;
  int (*destroy_)(Cudnn::Descriptor);
  bool made_;
};

struct Sizes {
  int dims, sizes[5], strides[5];
  /// (batch, channels, space...), contiguous; at least two dimensions of space, as cuDNN wants.
  Sizes(int64_t batch, int64_t channels, const cpu::Extent& space, int spatial) : dims(2 + spatial) {
    sizes[0] = int(batch);
    sizes[1] = int(channels);
    for (int d = 0; d < spatial; ++d) sizes[2 + d] = int(space[size_t(3 - spatial + d)]);
    for (int d = dims - 1, stride = 1; d >= 0; stride *= sizes[d--]) strides[d] = stride;
  }
};

constexpr size_t kMostWorkspace = size_t{1} << 30, kMeasuredWorkspace = size_t{256} << 20;
constexpr size_t kMostChoices = 4096;

/// What was chosen for a convolution; kept, as choosing takes long.
struct Choice {
  int algorithm, math;
  size_t workspace;
};

Tensor workspace_of(int device, size_t bytes) {
  return bytes ? allocate({{int64_t(bytes)}, kUInt8, Device(DeviceType::CUDA, device), {}}) : Tensor();
}

}  // namespace

int64_t cudnn_version() {
  const Cudnn* lib = Cudnn::get();
  return lib ? int64_t(lib->version()) : 0;
}

bool cudnn_convolution(int device, ConvolutionPass pass, const cpu::Convolution& conv, DType dtype, void* out,
                       const void* a, const void* b, const void* bias) {
  if (!cudnn_settings.enabled) return false;
  const int type = dtype == kFloat32    ? Cudnn::kFloat
                   : dtype == kFloat64  ? Cudnn::kDouble
                   : dtype == kFloat16  ? Cudnn::kHalf
                   : dtype == kBFloat16 ? Cudnn::kBFloat
                                        : -1;
  int64_t in = conv.batch * conv.in_channels, result = conv.batch * conv.out_channels;
  for (size_t d = 0; d < 3; ++d) {
    in *= conv.input[d];
    result *= conv.output[d];
  }
  constexpr int64_t most = (int64_t{1} << 31) - 1;
  if (type < 0 || in == 0 || result == 0 || in > most || result > most) return false;
  const Cudnn* lib = Cudnn::get();
  if (!lib) return false;

  const int spatial = conv.input[0] == 1 && conv.output[0] == 1 && conv.kernel[0] == 1 && conv.padding[0] == 0 ? 2 : 3;
  const Sizes x(conv.batch, conv.in_channels, conv.input, spatial),
      y(conv.batch, conv.out_channels, conv.output, spatial),
      w(conv.out_channels, conv.in_channels / conv.groups, conv.kernel, spatial);
  int padding[3], stride[3], dilation[3];
  for (int d = 0; d < spatial; ++d) {
    const size_t from = size_t(3 - spatial + d);
    padding[d] = int(conv.padding[from]);
    stride[d] = int(conv.stride[from]);
    dilation[d] = int(conv.dilation[from]);
  }
  const int compute = dtype == kFloat64 ? Cudnn::kDouble : Cudnn::kFloat;

  runtime().make_current(device);
  static std::mutex& mutex = *new std::mutex;
  const std::lock_guard lock(mutex);
  static Cudnn::Handle handles[kMaxDevices];
  Cudnn::Handle& handle = handles[device];
  if (!handle && lib->create(&handle) != 0) return false;
  const Owned x_desc(lib->create_tensor, lib->destroy_tensor), y_desc(lib->create_tensor, lib->destroy_tensor),
      bias_desc(lib->create_tensor, lib->destroy_tensor), w_desc(lib->create_filter, lib->destroy_filter),
      conv_desc(lib->create_convolution, lib->destroy_convolution);
  if (!x_desc || !y_desc || !bias_desc || !w_desc || !conv_desc ||
      lib->set_stream(handle, current_stream(device).handle()) != 0 ||
      lib->set_tensor(x_desc, type, x.dims, x.sizes, x.strides) != 0 ||
      lib->set_tensor(y_desc, type, y.dims, y.sizes, y.strides) != 0 ||
      lib->set_filter(w_desc, type, Cudnn::kPlain, w.dims, w.sizes) != 0 ||
      lib->set_convolution(conv_desc, spatial, padding, stride, dilation, Cudnn::kCorrelation, compute) != 0 ||
      lib->set_groups(conv_desc, int(conv.groups)) != 0)
    return false;

  const Cudnn::Pass& calls = lib->passes[int(pass)];
  const bool swapped = pass == ConvolutionPass::data;  // cuDNN's order is the weight, the gradient
  const void *first = swapped ? b : a, *second = swapped ? a : b;
  const Cudnn::Descriptor first_desc = swapped ? w_desc : x_desc,
                          second_desc = pass == ConvolutionPass::forward ? w_desc : y_desc,
                          out_desc = pass == ConvolutionPass::forward ? y_desc
                                     : swapped                        ? x_desc
                                                                      : w_desc;

  static auto& choices = *new std::map<std::string, Choice>;
  const CudnnSettings now = cudnn_settings;
  std::string key(reinterpret_cast<const char*>(&conv), sizeof conv);
  for (int part : {device, int(pass), type, int(now.benchmark), int(now.deterministic), int(now.allow_tf32)})
    key += std::to_string(part) + ' ';
  auto chosen = choices.find(key);
  if (chosen == choices.end()) {
    const int math = is_half(dtype) ? Cudnn::kTensorMath : now.allow_tf32 ? Cudnn::kDefaultMath : Cudnn::kFmaMath;
    if (lib->set_math(conv_desc, math) != 0) return false;
    constexpr int kMost = 8;
    Performance found[kMost];
    int count = 0;
    if (now.benchmark) {
      const Tensor space = workspace_of(device, kMeasuredWorkspace);
      if (calls.measure(handle, first_desc, first, second_desc, second, conv_desc, out_desc, out, kMost, &count, found,
                        space.data_ptr(), kMeasuredWorkspace) != 0)
        return false;
    } else if (calls.heuristic(handle, first_desc, second_desc, conv_desc, out_desc, kMost, &count, found) != 0) {
      return false;
    }
    const Performance* best = nullptr;
    for (int i = 0; i < count && !best; ++i)
      if (found[i].status == 0 && found[i].memory <= kMostWorkspace &&
          (!now.deterministic || found[i].determinism == Cudnn::kDeterministic))
        best = &found[i];
    if (!best) return false;
    Choice choice{best->algorithm, best->math, 0};
    if (lib->set_math(conv_desc, choice.math) != 0 ||
        calls.workspace(handle, first_desc, second_desc, conv_desc, out_desc, choice.algorithm, &choice.workspace) != 0)
      return false;
    if (choices.size() >= kMostChoices) choices.clear();
    chosen = choices.emplace(std::move(key), choice).first;
  }
  const Choice& choice = chosen->second;
  const Tensor space = workspace_of(device, choice.workspace);
  const double one = 1, zero = 0;
  const float short_one = 1, short_zero = 0;
  const bool wide = dtype == kFloat64;
  const void* const alpha = wide ? static_cast<const void*>(&one) : &short_one;
  const void* const beta = wide ? static_cast<const void*>(&zero) : &short_zero;
  if (lib->set_math(conv_desc, choice.math) != 0 ||
      calls.run(handle, alpha, first_desc, first, second_desc, second, conv_desc, choice.algorithm,
                space.defined() ? space.data_ptr() : nullptr, choice.workspace, beta, out_desc, out) != 0)
    return false;
  if (!bias) return true;
  const Sizes added(1, swapped ? conv.in_channels : conv.out_channels, {1, 1, 1}, spatial);
  return lib->set_tensor(bias_desc, type, added.dims, added.sizes, added.strides) == 0 &&
         lib->add(handle, alpha, bias_desc, bias, alpha, out_desc, out) == 0;
}

}  // namespace rush::cuda
