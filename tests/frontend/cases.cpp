// One row for each layer, written once: tests/python/test_cpp_frontend.py gets the row's text, builds the same layer in
// Python and compares. Given a file's name, writes what each layer was and did there, and its text to the output.
#include <array>
#include <iostream>
#include <tuple>

#include "rushlight/rushlight.h"

namespace rush {
namespace {

NamedTensors record;
int count = 0;  // of cases

void keep(const std::string& what, const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) record.emplace_back(what + "." + name, clone(tensor.detach()));
}

/// Line breaks as "\n", so that a case is one line.
std::string one_line(const std::string& text) {
  std::string line;
  for (const char c : text) line += c == '\n' ? "\\n" : std::string(1, c);
  return line;
}

template <class Make, class Draw>
void run_case(const char* layer_text, const char* inputs_text, Make&& make, Draw&& draw) {
  const std::string at = std::to_string(count++);
  default_generator().manual_seed(0);
  auto layer = make();
  default_generator().manual_seed(1);
  const auto inputs = draw();
  keep(at + ".first", layer->state_dict());
  const Tensor trained = std::apply(layer, inputs);
  if (trained.requires_grad()) sum(trained * trained).backward();
  NamedTensors grads;
  for (const auto& [name, parameter] : layer->named_parameters())
    if (parameter.grad().defined()) grads.emplace_back(name, parameter.grad());
  layer->eval();
  const Tensor evaluated = std::apply(layer, inputs);
  keep(at + ".after", layer->state_dict());
  keep(at + ".grad", grads);
  keep(at + ".output", {{"trained", trained}, {"evaluated", evaluated}});
  std::cout << layer_text << '\t' << inputs_text << '\t' << one_line(layer->to_string()) << '\n';
}

template <class Fill>
void run_init(const char* text, Fill&& fill) {
  default_generator().manual_seed(0);
  record.emplace_back(std::to_string(count++) + ".filled", fill());
  std::cout << text << '\n';
}

// CASE(layer, inputs...)
#define CASE(layer, ...) \
  run_case(              \
      #layer, #__VA_ARGS__, [] { return layer; }, [] { return std::array{__VA_ARGS__}; })

// INIT(expression): a tensor that a function of nn::init filled
#define INIT(expression) run_init(#expression, [] { return expression; })

void run_all() {
  CASE(nn::Identity(), randn({2, 3}));
  CASE(nn::Linear({4, 4}), randn({3, 4}));
  CASE(nn::Linear({.in_features = 5, .out_features = 3, .bias = false}), randn({2, 2, 5}));
  CASE(nn::Linear({.in_features = 70, .out_features = 33, .dtype = kFloat64}), full({4, 70}, 0.3, kFloat64));
  CASE(nn::Bilinear({3, 4, 2}), randn({5, 3}), randn({5, 4}));

  CASE(nn::Conv1d({2, 6, 3}), randn({2, 2, 9}));
  CASE(nn::Conv1d({.in_channels = 4,
                   .out_channels = 6,
                   .kernel_size = 3,
                   .stride = 2,
                   .padding = 1,
                   .dilation = 2,
                   .groups = 2}),
       randn({2, 4, 11}));
  CASE(nn::Conv2d({.in_channels = 1, .out_channels = 16, .kernel_size = 3, .padding = 1}), randn({2, 1, 8, 8}));
  CASE(nn::Conv2d({.in_channels = 3, .out_channels = 4, .kernel_size = {3, 5}, .padding = "same", .bias = false}),
       randn({3, 7, 9}));
  CASE(
      nn::Conv2d({.in_channels = 3, .out_channels = 4, .kernel_size = 3, .padding = {1, 2}, .padding_mode = "reflect"}),
      randn({2, 3, 6, 6}));
  CASE(nn::Conv2d(
           {.in_channels = 3, .out_channels = 4, .kernel_size = 4, .padding = "same", .padding_mode = "circular"}),
       randn({2, 3, 6, 6}));
  CASE(nn::Conv3d({.in_channels = 2, .out_channels = 3, .kernel_size = {1, 2, 3}}), randn({1, 2, 4, 5, 6}));
  CASE(nn::ConvTranspose1d({2, 3, 4}), randn({2, 2, 5}));
  CASE(nn::ConvTranspose2d({.in_channels = 4,
                            .out_channels = 6,
                            .kernel_size = 3,
                            .stride = 2,
                            .padding = 1,
                            .output_padding = 1,
                            .groups = 2}),
       randn({2, 4, 5, 5}));
  CASE(nn::ConvTranspose3d({.in_channels = 2, .out_channels = 2, .kernel_size = 2, .bias = false, .dilation = 2}),
       randn({1, 2, 3, 3, 3}));

  CASE(nn::BatchNorm1d({6}), randn({5, 6}));
  CASE(nn::BatchNorm1d({.num_features = 3, .momentum = 0.5, .affine = false}), randn({4, 3, 5}));
  CASE(nn::BatchNorm2d({.num_features = 3, .eps = 1e-3, .bias = false}), randn({4, 3, 5, 5}));
  CASE(nn::BatchNorm2d({.num_features = 3, .track_running_stats = false}), randn({4, 3, 5, 5}));
  CASE(nn::BatchNorm3d({2}), randn({2, 2, 3, 3, 3}));
  CASE(nn::InstanceNorm1d({3}), randn({4, 3, 5}));
  CASE(nn::InstanceNorm2d({.num_features = 3, .affine = true, .track_running_stats = true}), randn({4, 3, 5, 5}));
  CASE(nn::InstanceNorm3d({2}), randn({2, 3, 3, 3}));
  CASE(nn::LayerNorm({8}), randn({4, 8}));
  CASE(nn::LayerNorm({.normalized_shape = {3, 4}, .eps = 1e-6, .bias = false}), randn({2, 3, 4}));
  CASE(nn::LayerNorm({.normalized_shape = 5, .elementwise_affine = false}), randn({2, 5}));
  CASE(nn::RMSNorm({8}), randn({4, 8}));
  CASE(nn::RMSNorm({.normalized_shape = {3, 4}, .eps = 1e-6}), randn({2, 3, 4}));
  CASE(nn::GroupNorm({2, 6}), randn({3, 6, 4}));
  CASE(nn::GroupNorm({.num_groups = 3, .num_channels = 6, .affine = false}), randn({3, 6, 4, 4}));

  CASE(nn::Embedding({10, 4}), randint(10, {3, 5}));
  CASE(nn::Embedding({.num_embeddings = 10, .embedding_dim = 20, .padding_idx = -1}), randint(10, {7}));
  CASE(nn::Embedding({.num_embeddings = 5, .embedding_dim = 3, .max_norm = 1.0, .scale_grad_by_freq = true}),
       randint(5, {6}));

  CASE(nn::Dropout(), randn({4, 5}));
  CASE(nn::Dropout({.p = 0.2, .inplace = true}), randn({4, 5}));
  CASE(nn::Dropout1d({.p = 0.3}), randn({4, 5}));
  CASE(nn::Dropout2d({.p = 0.3}), randn({2, 4, 5, 5}));
  CASE(nn::Dropout3d({.p = 0.3}), randn({4, 3, 3, 3}));
  CASE(nn::AlphaDropout({.p = 0.1}), randn({4, 5}));
  CASE(nn::Flatten(), randn({2, 3, 4}));
  CASE(nn::Flatten({.start_dim = 0, .end_dim = 1}), randn({2, 3, 4}));
  CASE(nn::Unflatten({.dim = 1, .unflattened_size = {2, -1}}), randn({2, 6}));

  CASE(nn::MaxPool1d({2}), randn({2, 3, 9}));
  CASE(nn::MaxPool2d({.kernel_size = 3, .stride = 2, .padding = 1, .ceil_mode = true}), randn({2, 3, 8, 9}));
  CASE(nn::MaxPool2d({.kernel_size = {3, 2}, .dilation = {1, 2}}), randn({3, 8, 9}));
  CASE(nn::MaxPool3d({2}), randn({1, 2, 4, 4, 4}));
  CASE(nn::AvgPool1d({3}), randn({2, 3, 9}));
  CASE(nn::AvgPool2d({.kernel_size = 3, .stride = 2, .padding = 1, .count_include_pad = false}), randn({2, 3, 8, 9}));
  CASE(nn::AvgPool3d({.kernel_size = 2, .divisor_override = 3}), randn({1, 2, 4, 4, 4}));
  CASE(nn::AdaptiveMaxPool1d({4}), randn({2, 3, 9}));
  CASE(nn::AdaptiveMaxPool2d({.output_size = {2, 3}}), randn({2, 3, 8, 9}));
  CASE(nn::AdaptiveMaxPool3d({2}), randn({1, 2, 4, 5, 6}));
  CASE(nn::AdaptiveAvgPool1d({4}), randn({2, 3, 9}));
  CASE(nn::AdaptiveAvgPool2d({.output_size = {2, 3}}), randn({2, 3, 8, 9}));
  CASE(nn::AdaptiveAvgPool3d({1}), randn({1, 2, 4, 5, 6}));

  CASE(nn::ReLU(), randn({3, 4}));
  CASE(nn::ReLU({.inplace = true}), randn({3, 4}));
  CASE(nn::ReLU6(), randn({3, 4}));
  CASE(nn::SELU(), randn({3, 4}));
  CASE(nn::SiLU(), randn({3, 4}));
  CASE(nn::Mish(), randn({3, 4}));
  CASE(nn::Hardswish(), randn({3, 4}));
  CASE(nn::Hardsigmoid(), randn({3, 4}));
  CASE(nn::Sigmoid(), randn({3, 4}));
  CASE(nn::Tanh(), randn({3, 4}));
  CASE(nn::LogSigmoid(), randn({3, 4}));
  CASE(nn::Softsign(), randn({3, 4}));
  CASE(nn::Tanhshrink(), randn({3, 4}));
  CASE(nn::ELU({.alpha = 0.5}), randn({3, 4}));
  CASE(nn::CELU({.alpha = 0.5, .inplace = true}), randn({3, 4}));
  CASE(nn::LeakyReLU({.negative_slope = 0.2}), randn({3, 4}));
  CASE(nn::Hardtanh({.min_val = -2.0, .max_val = 0.5}), randn({3, 4}));
  CASE(nn::Threshold({.threshold = 0.1, .value = 20.0}), randn({3, 4}));
  CASE(nn::GELU(), randn({3, 4}));
  CASE(nn::GELU({.approximate = "tanh"}), randn({3, 4}));
  CASE(nn::GLU({.dim = 0}), randn({4, 3}));
  CASE(nn::Hardshrink(), randn({3, 4}));
  CASE(nn::Softshrink({.lambd = 0.3}), randn({3, 4}));
  CASE(nn::Softplus({.beta = 2.0}), randn({3, 4}));
  CASE(nn::PReLU(), randn({3, 4}));
  CASE(nn::PReLU({.num_parameters = 4, .init = 0.1}), randn({3, 4}));
  CASE(nn::Softmax({.dim = 1}), randn({3, 4}));
  CASE(nn::Softmin({.dim = 0}), randn({3, 4}));
  CASE(nn::LogSoftmax({.dim = -1}), randn({3, 4}));

  CASE(nn::L1Loss(), randn({3, 4}), randn({3, 4}));
  CASE(nn::MSELoss({.reduction = "sum"}), randn({3, 4}), randn({3, 4}));
  CASE(nn::SoftMarginLoss(), randn({3, 4}), sign(randn({3, 4})));
  CASE(nn::MultiLabelMarginLoss(), randn({3, 4}), randint(4, {3, 4}));
  CASE(nn::SmoothL1Loss({.beta = 0.5}), randn({3, 4}), randn({3, 4}));
  CASE(nn::HuberLoss({.reduction = "none", .delta = 0.5}), randn({3, 4}), randn({3, 4}));
  CASE(nn::KLDivLoss({.reduction = "batchmean"}), randn({3, 4}), rand({3, 4}));
  CASE(nn::KLDivLoss({.reduction = "sum", .log_target = true}), randn({3, 4}), randn({3, 4}));
  CASE(nn::PoissonNLLLoss({.full = true}), randn({3, 4}), rand({3, 4}));
  CASE(nn::HingeEmbeddingLoss({.margin = 0.5}), randn({3, 4}), sign(randn({3, 4})));
  CASE(nn::NLLLoss({.weight = rand({4}), .ignore_index = 1}), randn({5, 4}), randint(4, {5}));
  CASE(nn::CrossEntropyLoss(), randn({5, 4}), randint(4, {5}));
  CASE(nn::CrossEntropyLoss({.weight = rand({4}), .label_smoothing = 0.1}), randn({5, 4, 2}), randint(4, {5, 2}));
  CASE(nn::BCELoss(), rand({3, 4}), rand({3, 4}));
  CASE(nn::BCEWithLogitsLoss({.pos_weight = rand({4})}), randn({3, 4}), rand({3, 4}));
  CASE(nn::MultiMarginLoss({.p = 2, .margin = 0.5}), randn({5, 4}), randint(4, {5}));
  CASE(nn::CosineEmbeddingLoss({.margin = 0.1}), randn({5, 4}), randn({5, 4}), sign(randn({5})));
  CASE(nn::MarginRankingLoss({.margin = 0.1}), randn({5}), randn({5}), sign(randn({5})));
  CASE(nn::TripletMarginLoss({.margin = 0.5, .swap = true}), randn({5, 4}), randn({5, 4}), randn({5, 4}));

  INIT(nn::init::uniform_(empty({5, 7}), -1.0, 2.0));
  INIT(nn::init::normal_(empty({5, 7}), 1.0, 0.5));
  INIT(nn::init::normal_(empty({3}), 1.0, 0.5));
  INIT(nn::init::trunc_normal_(empty({20, 20})));
  INIT(nn::init::trunc_normal_(empty({20, 20}), 0.0, 1.0, 0.9, 3.0));
  INIT(nn::init::constant_(empty({5}), 3));
  INIT(nn::init::eye_(empty({4, 3})));
  INIT(nn::init::dirac_(empty({6, 2, 3, 3}), 2));
  INIT(nn::init::xavier_uniform_(empty({5, 7, 3}), 1.5));
  INIT(nn::init::xavier_normal_(empty({5, 7})));
  INIT(nn::init::kaiming_uniform_(empty({5, 7}), {.a = 0.2, .mode = "fan_out"}));
  INIT(nn::init::kaiming_normal_(empty({5, 7, 3, 3}), {.nonlinearity = "relu"}));
  INIT(nn::init::sparse_(empty({10, 4}), 0.3));
}

}  // namespace
}  // namespace rush

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  rush::run_all();
  rush::save(rush::record, argv[1]);
  return 0;
}
