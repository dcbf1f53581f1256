// The frontend's optimizers, schedules and loader against values recorded from PyTorch 2.15.
#include "rushlight/optim.h"

#include <gtest/gtest.h>

#include "rushlight/data.h"
#include "rushlight/ops.h"

namespace rush {
namespace {

Tensor matrix(std::vector<float> values) {
  Tensor t = allocate({.sizes = {2, 2}});
  std::copy(values.begin(), values.end(), t.data<float>());
  return t;
}

Tensor start() { return matrix({1, -2, 0.5, 4}).requires_grad_(); }

void steps(optim::Optimizer& optimizer, const Tensor& p, int first, int last) {
  for (int i = first; i < last; ++i) {
    const float scale = 1 - 0.7f * float(i);
    p.set_grad(matrix({0.5f * scale, -1 * scale, 2 * scale, 0.25f * scale}));
    optimizer.step();
  }
}

void expect_near(const Tensor& t, std::vector<float> expected, float tolerance = 2e-6f) {
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(t.data<float>()[i], expected[i], tolerance) << i;
}

TEST(Optim, ValuesArePyTorchs) {
  const Tensor a = start(), b = start(), c = start(), d = start(), e = start();
  optim::SGD sgd({a}, {.lr = 0.1, .momentum = 0.9, .dampening = 0.1, .weight_decay = 0.01});
  steps(sgd, a, 0, 3);
  expect_near(a, {0.851717, -1.703435, -0.074525, 3.907254});
  optim::SGD nesterov({b}, {.lr = 0.1, .momentum = 0.9, .nesterov = true});
  steps(nesterov, b, 0, 3);
  expect_near(b, {0.8254, -1.6508, -0.1984, 3.9127});
  optim::Adam adam({c}, {.lr = 0.1, .weight_decay = 0.1, .amsgrad = true});
  steps(adam, c, 0, 3);
  expect_near(c, {0.753411, -1.751754, 0.272711, 3.709717});
  optim::AdamW adamw({d}, {.lr = 0.1});
  steps(adamw, d, 0, 3);
  expect_near(d, {0.772833, -1.769836, 0.274331, 3.763842});
  optim::SGD plain({e}, {.lr = 0.1, .maximize = true});
  steps(plain, e, 0, 3);
  expect_near(e, {1.045, -2.09, 0.68, 4.0225});
}

template <class Kind, class Options>
void moves_to(const Options& options, std::vector<float> expected, int count = 3, float tolerance = 2e-6f) {
  const Tensor p = start();
  Kind optimizer({p}, options);
  steps(optimizer, p, 0, count);
  expect_near(p, expected, tolerance);
}

TEST(Optim, ValuesOfTheOthersArePyTorchs) {
  using namespace optim;
  moves_to<RMSprop>(RMSpropOptions{.lr = 0.1, .momentum = 0.5, .centered = true},
                    {-0.833284, -0.166716, -1.333284, 2.166716});
  moves_to<RMSprop>(RMSpropOptions{.lr = 0.1, .weight_decay = 0.1}, {0.100298, -0.938317, -0.375653, 2.300921});
  moves_to<Adagrad>(AdagradOptions{.lr = 0.1, .lr_decay = 0.1, .initial_accumulator_value = 0.1},
                    {0.919092, -1.908342, 0.40492, 3.941099});
  moves_to<Adadelta>(AdadeltaOptions{.lr = 0.1, .weight_decay = 0.1}, {0.999583, -1.999583, 0.499707, 3.999217});
  moves_to<Adamax>(AdamaxOptions{.lr = 0.1, .weight_decay = 0.1}, {0.795451, -1.794217, 0.309621, 3.745128});
  moves_to<NAdam>(NAdamOptions{.lr = 0.1, .weight_decay = 0.1}, {0.860853, -1.858781, 0.387096, 3.781691});
  moves_to<NAdam>(NAdamOptions{.lr = 0.1, .weight_decay = 0.1, .decoupled_weight_decay = true},
                  {0.863587, -1.833886, 0.378438, 3.774484});
  moves_to<RAdam>(RAdamOptions{.lr = 0.1, .weight_decay = 0.1}, {0.896725, -1.789572, 0.248782, 3.771983}, 7);
  moves_to<ASGD>(ASGDOptions{.lr = 0.1, .t0 = 1}, {0.954971, -1.909942, 0.319989, 3.97738});
  moves_to<Rprop>(RpropOptions{.lr = 0.1}, {0.78, -1.78, 0.28, 3.78});
  moves_to<Adafactor>(AdafactorOptions{.lr = 0.1}, {0.9273, -1.709199, 0.338693, 3.959673});
  moves_to<Muon>(MuonOptions{.lr = 0.1}, {0.919935, -1.619618, 0.28635, 3.801525}, 3, 5e-3f);  // in bfloat16 inside
  EXPECT_THROW(Adafactor({start()}, {.d = 0.5}), ValueError);
  EXPECT_THROW(Muon({zeros({3}).requires_grad_()}), ValueError);
  EXPECT_THROW(Rprop({start()}, {.etas = {2, 3}}), ValueError);
  EXPECT_THROW(Adadelta({start()}, {.rho = 1.5}), ValueError);
  EXPECT_THROW(Adamax({start()}, {.betas = {1, 0.9}}), ValueError);
}

TEST(Optim, StateGoesOnAsBefore) {
  const Tensor a = start(), b = start();
  optim::Adam one({a}, {.lr = 0.1}), two({b}, {.lr = 0.1});
  steps(one, a, 0, 2);
  const NamedTensors state = one.state_dict();
  ASSERT_EQ(state.size(), 3u);
  EXPECT_EQ(state[0].first, "state.0.step");
  two.load_state_dict(state);
  std::copy_n(a.data<float>(), 4, b.data<float>());
  steps(one, a, 2, 4);
  steps(two, b, 2, 4);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(a.data<float>()[i], b.data<float>()[i]);
}

TEST(Optim, StateThatIsNotLikeTheParameterGoesOnAsBefore) {
  const Tensor a = start(), b = start();
  optim::Adafactor one({a}, {.lr = 0.1}), two({b}, {.lr = 0.1});
  steps(one, a, 0, 2);
  const NamedTensors state = one.state_dict();
  ASSERT_EQ(state.size(), 3u);
  EXPECT_EQ(state[1].first, "state.0.row_var");
  EXPECT_EQ(state[1].second.sizes(), (Dims{2, 1}));
  two.load_state_dict(state);
  std::copy_n(a.data<float>(), 4, b.data<float>());
  steps(one, a, 2, 4);
  steps(two, b, 2, 4);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(a.data<float>()[i], b.data<float>()[i]);
  EXPECT_THROW(two.load_state_dict({{"state.0.row_var", zeros({2, 2})}}), Error);
}

TEST(Optim, ClosureGroupsAndErrors) {
  const Tensor a = start(), b = start();
  optim::SGD optimizer({a}, {.lr = 0.1});
  optimizer.add_param_group({b}, {.lr = 0});
  const Tensor loss = optimizer.step([&] {
    optimizer.zero_grad();
    a.set_grad(matrix({1, 1, 1, 1}));
    b.set_grad(matrix({1, 1, 1, 1}));
    return matrix({7, 0, 0, 0});
  });
  EXPECT_EQ(loss.data<float>()[0], 7);
  expect_near(a, {0.9, -2.1, 0.4, 3.9});
  expect_near(b, {1, -2, 0.5, 4});
  optimizer.zero_grad();
  EXPECT_FALSE(a.grad().defined());
  EXPECT_THROW(optim::SGD({}), ValueError);
  EXPECT_THROW(optim::SGD({a}, {.lr = -1}), ValueError);
  EXPECT_THROW(optim::SGD({a}, {.nesterov = true}), ValueError);
  EXPECT_THROW(optimizer.add_param_group({a}, {}), ValueError);
}

template <class Make>
std::vector<double> rates(const Make& make, int epochs = 8) {
  optim::SGD optimizer({start()}, {.lr = 0.1, .momentum = 0.9});
  auto schedule = make(optimizer);
  std::vector<double> result;
  for (int i = 0; i < epochs; ++i) {
    result.push_back(optimizer.param_groups()[0].lr);
    schedule.step();
  }
  return result;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-8) << i;
}

TEST(Schedules, RatesArePyTorchs) {
  expect_near(rates([](auto& o) { return optim::StepLR(o, 3, 0.5); }), {0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025, 0.025});
  expect_near(rates([](auto& o) { return optim::LambdaLR(o, [](int64_t e) { return 1.0 / double(1 + e); }); }, 3),
              {0.1, 0.05, 0.1 / 3});
  expect_near(rates([](auto& o) { return optim::CosineAnnealingLR(o, 5, 0.01); }),
              {0.1, 0.0914057647, 0.0689057647, 0.0410942353, 0.0185942353, 0.01, 0.0185942353, 0.0410942353});
  expect_near(rates([](auto& o) { return optim::OneCycleLR(o, {.max_lr = 0.5, .total_steps = 10}); }),
              {0.02, 0.26, 0.5, 0.475242316, 0.405872827, 0.305631011, 0.194370989, 0.094129173});
  expect_near(rates([](auto& o) {
                return optim::OneCycleLR(o, {.max_lr = 0.5, .total_steps = 10, .linear = true, .three_phase = true});
              }),
              {0.02, 0.26, 0.5, 0.26, 0.02, 0.0160004, 0.0120008, 0.0080012});
}

TEST(Schedules, Plateau) {
  optim::SGD optimizer({start()}, {.lr = 0.1});
  optim::ReduceLROnPlateau schedule(optimizer, {.factor = 0.5, .patience = 1, .cooldown = 1, .min_lr = 0.03});
  std::vector<double> got;
  for (const double metric : {1., 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.5, 0.6, 0.6}) {
    schedule.step(metric);
    got.push_back(optimizer.param_groups()[0].lr);
  }
  expect_near(got, {0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.03, 0.03, 0.03, 0.03});
}

TEST(DataLoader, BatchesAndOrder) {
  Tensor x = allocate({.sizes = {10}, .dtype = kInt64}), y = allocate({.sizes = {10, 2}});
  for (int64_t i = 0; i < 10; ++i) {
    x.data<int64_t>()[i] = i;
    y.data<float>()[2 * i] = y.data<float>()[2 * i + 1] = float(i);
  }
  const data::TensorDataset dataset({x, y});
  const auto order = [&](const data::DataLoader& loader) {
    std::vector<int64_t> result;
    for (const auto& batch : loader)
      for (int64_t i = 0; i < batch[0].numel(); ++i) {
        result.push_back(batch[0].data<int64_t>()[i]);
        EXPECT_EQ(batch[1].data<float>()[2 * i + 1], float(result.back()));
      }
    return result;
  };
  EXPECT_EQ(order({dataset, {.batch_size = 4}}), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(order({dataset, {.batch_size = 4, .drop_last = true}}).size(), 8u);
  EXPECT_EQ(data::DataLoader(dataset, {.batch_size = 4}).size(), 3);
  default_generator().manual_seed(0);
  const data::DataLoader shuffled(dataset, {.batch_size = 4, .shuffle = true});
  EXPECT_EQ(order(shuffled), (std::vector<int64_t>{6, 7, 1, 4, 2, 0, 9, 8, 3, 5}));
  EXPECT_EQ(order(shuffled), (std::vector<int64_t>{2, 4, 7, 0, 8, 9, 5, 3, 6, 1}));
  EXPECT_THROW(data::TensorDataset({x, allocate({.sizes = {3}})}), ValueError);
}

}  // namespace
}  // namespace rush
