// Module: registration, names, state dicts, modes and printing, with layers that need no more than tensors.
#include "rushlight/nn.h"

#include <gtest/gtest.h>

#include <sstream>

#include "rushlight/autograd.h"
#include "rushlight/generator.h"
#include "rushlight/ops.h"

namespace rush {
namespace {

struct Scale : nn::Module {
  Tensor factor = full({3}, 2.0), calls = zeros({}, kInt64), cache = zeros({3});
  explicit Scale(const char* name = "factor") {
    register_parameter(name, factor);
    register_buffer("calls", calls);
    register_buffer("cache", cache, false);
  }
  Tensor forward(const Tensor& x) override { return x * factor; }
};

struct Net : nn::Module {
  nn::Handle<Scale> first = register_module("first", nn::Handle<Scale>());
  nn::Sequential rest = register_module("rest", nn::Sequential(nn::ReLU(), nn::Handle<Scale>("weight")));
  Tensor shift = ones({3});
  Net() { register_parameter("shift", shift); }
  Tensor forward(const Tensor& x) override { return rest(first(x)) + shift; }
};

std::vector<std::string> names(const NamedTensors& tensors) {
  std::vector<std::string> result;
  for (const auto& [name, tensor] : tensors) result.push_back(name);
  return result;
}
using Names = std::vector<std::string>;

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Module, NamesAndOrderArePythons) {
  Net net;
  EXPECT_EQ(names(net.named_parameters()), (Names{"shift", "first.factor", "rest.1.weight"}));
  EXPECT_EQ(names(net.named_parameters("net", false)), (Names{"net.shift"}));
  EXPECT_EQ(names(net.named_buffers()), (Names{"first.calls", "first.cache", "rest.1.calls", "rest.1.cache"}));
  EXPECT_EQ(names(net.state_dict()), (Names{"shift", "first.factor", "first.calls", "rest.1.weight", "rest.1.calls"}));
  Names modules;
  for (const auto& [name, module] : net.named_modules()) modules.push_back(name);
  EXPECT_EQ(modules, (Names{"", "first", "rest", "rest.0", "rest.1"}));
  EXPECT_EQ(net.children().size(), 2u);
  for (const Tensor& p : net.parameters()) EXPECT_TRUE(p.requires_grad());
}

TEST(Module, IsCalledAndTrained) {
  Net net;
  const Tensor y = net(ones({2, 3}));
  EXPECT_EQ(sum(y).item<double>(), 2 * 3 * (2 * 2 + 1));
  sum(y).backward();
  EXPECT_EQ(net.first->factor.grad().data<float>()[0], 4);
  net.zero_grad(false);
  EXPECT_EQ(net.shift.grad().data<float>()[0], 0);
  net.zero_grad();
  EXPECT_FALSE(net.shift.grad().defined());
  net.eval();
  EXPECT_FALSE(net.rest->is_training() || net.first->is_training());
  net.requires_grad_(false);
  EXPECT_FALSE(net(ones({3})).requires_grad());
  EXPECT_THROW(nn::ModuleList(nn::ReLU())(y), NotImplementedError);
}

TEST(Module, FieldsAreTheParameters) {
  Net net;
  auto& last = *(*net.rest)[-1].as<nn::Handle<Scale>>();
  last.factor = net.first->factor;  // tied: found once, saved under both names
  EXPECT_EQ(net.parameters().size(), 2u);
  EXPECT_EQ(net.state_dict().size(), 5u);
  EXPECT_EQ((*net.rest)[0].as<nn::Handle<Scale>>(), nullptr);
}

TEST(Module, StateDictLoads) {
  Net net, other;
  const NoGrad guard;
  in_place(fill, net.first->factor, Tensor(7));
  other.load_state_dict(net.state_dict());
  EXPECT_EQ(other.first->factor.data<float>()[2], 7);
  EXPECT_NE(other.first->factor.data_ptr(), net.first->factor.data_ptr());

  NamedTensors state = net.state_dict();
  state[0].first = "shfit";
  state[1].second = ones({2});
  EXPECT_EQ(message_of([&] { other.load_state_dict(state); }),
            "Error(s) in loading state_dict for Net:\n"
            "\tMissing key(s) in state_dict: \"shift\". \n"
            "\tUnexpected key(s) in state_dict: \"shfit\". \n"
            "\tsize mismatch for first.factor: copying a param with shape [2] from checkpoint, the shape in current "
            "model is [3].");
  EXPECT_THROW(other.load_state_dict(state, false), Error);
  state[1].second = ones({3});
  const nn::IncompatibleKeys keys = other.load_state_dict(state, false);
  EXPECT_EQ(keys.missing_keys, Names{"shift"});
  EXPECT_EQ(keys.unexpected_keys, Names{"shfit"});
}

TEST(Module, FilesKeepWeights) {
  Net net, other;
  {
    const NoGrad guard;
    in_place(fill, net.shift, Tensor(5));
  }
  const std::string path = testing::TempDir() + "nn_test.pt";
  save(net.state_dict(), path);
  other.load_state_dict(load(path));
  EXPECT_EQ(other.shift.data<float>()[0], 5);
  std::remove(path.c_str());
}

TEST(Module, ConvertsInPlace) {
  Net net;
  const Tensor held = net.shift;  // as an optimizer holds it
  net.to(kFloat64);
  EXPECT_EQ(held.dtype(), kFloat64);
  EXPECT_TRUE(held.is_same(net.shift) && held.is_leaf() && held.requires_grad());
  EXPECT_EQ(net.first->calls.dtype(), kInt64);
  EXPECT_EQ(net(ones({3}, kFloat64)).dtype(), kFloat64);
  EXPECT_THROW(net.to(kInt64), TypeError);
}

TEST(Module, AppliesFromBelow) {
  Net net;
  Names seen;
  net.apply([&](nn::Module& m) { seen.push_back(m.name()); });
  EXPECT_EQ(seen, (Names{"Scale", "ReLU", "Scale", "Sequential", "Net"}));
}

TEST(Module, RefusesBadNames) {
  struct Bad : nn::Module {
    Tensor t = ones({1});
    explicit Bad(const char* name) { register_parameter(name, t); }
  };
  EXPECT_EQ(message_of([] { Bad bad("a.b"); }), "parameter name can't contain \".\", got: a.b");
  EXPECT_EQ(message_of([] { Bad bad(""); }), "parameter name can't be empty string \"\"");
}

TEST(Module, PrintsAsPython) {
  Net net;
  std::ostringstream out;
  out << net;
  EXPECT_EQ(out.str(), "Net(\n  (first): Scale()\n  (rest): Sequential(\n    (0): ReLU()\n    (1): Scale()\n  )\n)");
  nn::ModuleList list{nn::ReLU(), nn::ReLU(), nn::Dropout({.p = 0.1})};
  EXPECT_EQ(list->to_string(), "ModuleList(\n  (0-1): 2 x ReLU()\n  (2): Dropout(p=0.1, inplace=False)\n)");
  EXPECT_EQ(nn::repr::of(1e-5), "1e-05");
  EXPECT_EQ(nn::repr::of(1e16), "1e+16");
  EXPECT_EQ(nn::repr::of(100.0), "100.0");
  EXPECT_EQ(nn::repr::of(1.0 / 3), "0.3333333333333333");
}

TEST(Containers, AreRows) {
  nn::Sequential row{nn::ReLU(), nn::Tanh()};
  row->insert(1, nn::Sigmoid());
  row->append(nn::Flatten());
  EXPECT_EQ(row->size(), 4u);
  EXPECT_EQ((*row)[1].name(), "Sigmoid");
  EXPECT_EQ((*row)[2].name(), "Tanh");
  EXPECT_EQ((*row)[-1].name(), "Flatten");
  EXPECT_THROW((*row)[4], IndexError);
  EXPECT_THROW(row->insert(5, nn::ReLU()), IndexError);
  EXPECT_EQ(row->size(), 4u);
}

TEST(Containers, RunLayersNormAndReluAsOneInInference) {
  const Tensor x = randn({2, 3, 9, 8});
  const auto same = [](const Tensor& a, const Tensor& b) { return allclose(a, b, 1e-5, 1e-5); };
  nn::Sequential row{nn::Conv2d({.in_channels = 3, .out_channels = 5, .kernel_size = 3, .stride = 2, .padding = 1}),
                     nn::BatchNorm2d({.num_features = 5, .eps = 0.1}),
                     nn::ReLU6(),
                     nn::Conv2d({.in_channels = 5, .out_channels = 4, .kernel_size = 1}),
                     nn::ReLU(),
                     nn::Conv2d({.in_channels = 4, .out_channels = 2, .kernel_size = 2}),
                     nn::Tanh(),
                     nn::Flatten(),
                     nn::Linear({.in_features = 24, .out_features = 7}),
                     nn::ReLU6()};
  for (int round = 0; round < 2; ++round) {  // training, where the norm uses its batch and keeps statistics; inference
    const Tensor recorded = row(x);
    if (round == 1) {
      const NoGrad guard;
      EXPECT_TRUE(same(row(x), recorded));
    }
    row->eval();
  }
  row->to(kFloat64);
  const NoGrad guard;
  EXPECT_EQ(row(x.to(kFloat64)).dtype(), kFloat64);
}

TEST(Init, FansGainsAndPatterns) {
  EXPECT_EQ(nn::init::fan_in_and_fan_out(empty({8, 4, 3, 3})), (std::pair<int64_t, int64_t>{36, 72}));
  EXPECT_DOUBLE_EQ(nn::init::calculate_gain("leaky_relu", 1), 1);
  EXPECT_THROW(nn::init::calculate_gain("relu7"), ValueError);
  EXPECT_THROW(nn::init::xavier_uniform_(empty({3})), ValueError);
  EXPECT_THROW(nn::init::kaiming_uniform_(empty({3, 3}), {.mode = "fan"}), ValueError);
  EXPECT_EQ(sum(nn::init::eye_(empty({3, 4}))).item<double>(), 3);
  EXPECT_EQ(sum(nn::init::dirac_(empty({4, 2, 3, 3}), 2)).item<double>(), 4);
  const Tensor sparse = nn::init::sparse_(empty({10, 3}), 0.25);
  EXPECT_EQ(sum(sparse == Tensor(0)).item<int64_t>(), 9);
}

TEST(Layers, LeaveNothingRequiredOut) {
  static_assert(!std::default_initializable<nn::Linear> && !std::default_initializable<nn::Conv2d>);
  static_assert(std::default_initializable<nn::ReLU> && std::default_initializable<nn::Dropout>);
  EXPECT_THROW(nn::Dropout({.p = 2}), ValueError);
  EXPECT_THROW(nn::Embedding({.num_embeddings = 3, .embedding_dim = 2, .padding_idx = 3}), ValueError);
}

}  // namespace
}  // namespace rush
