// The program of digits.py in C++: the same network, data, seed and optimizer. It is given the data and a folder, and
// writes the weights that Python loads, digits_cpp.pt, and digits_cpp.csv: the loss of every step and last the seconds.
#include <rushlight/rushlight.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <numeric>

namespace nn = rush::nn;
using rush::Tensor;

constexpr int kEpochs = 12, kBatch = 32;

struct DigitNet : nn::Module {
  nn::Conv2d conv1 =
      register_module("conv1", nn::Conv2d({.in_channels = 1, .out_channels = 32, .kernel_size = 3, .padding = 1}));
  nn::BatchNorm2d norm1 = register_module("norm1", nn::BatchNorm2d({32}));
  nn::Conv2d conv2 =
      register_module("conv2", nn::Conv2d({.in_channels = 32, .out_channels = 64, .kernel_size = 3, .padding = 1}));
  nn::BatchNorm2d norm2 = register_module("norm2", nn::BatchNorm2d({64}));
  nn::Linear fc1 = register_module("fc1", nn::Linear({64 * 2 * 2, 64}));
  nn::Linear fc2 = register_module("fc2", nn::Linear({64, 10}));

  Tensor forward(const Tensor& images) override {
    Tensor x = rush::max_pool2d(rush::relu(norm1(conv1(images))), {2, 2});
    x = rush::max_pool2d(rush::relu(norm2(conv2(x))), {2, 2});
    return fc2(rush::relu(fc1(rush::flatten(x, 1))));
  }
};

/// The rows of data/digits.npy, 64 pixels and a label: 128 bytes of header, then 65 bytes for each digit.
Tensor read_rows(const char* path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  rush::check(file.good(), "can't read ", path);
  const int64_t count = (int64_t(file.tellg()) - 128) / 65;
  Tensor rows = rush::empty({count, 65}, rush::kUInt8);
  file.seekg(128).read(rows.data<char>(), rows.numel());
  return rows;
}

/// Redraws the epoch's bar on a terminal; elsewhere, prints it once when it is full.
void show_progress(int epoch, int64_t done, int64_t total, double loss) {
  if (!isatty(STDOUT_FILENO) && done < total) return;
  std::string bar;
  for (int64_t i = 0; i < 24; ++i) bar += i < 24 * done / total ? "█" : " ";
  std::printf("epoch %2d/%d |%s| loss %.4f%c", epoch + 1, kEpochs, bar.c_str(), loss, done < total ? '\r' : '\n');
  std::fflush(stdout);
}

/// Returns the loss of every step.
std::vector<double> train(nn::Module& model, const rush::data::Dataset& digits) {
  rush::optim::Adam optimizer(model.parameters(), {.lr = 2e-3});
  rush::optim::StepLR schedule(optimizer, 4, 0.3);
  rush::data::DataLoader loader(digits, {.batch_size = kBatch, .shuffle = true});
  std::vector<double> losses;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    model.train();
    int64_t step = 0;
    for (const auto& batch : loader) {
      const Tensor loss = rush::cross_entropy(model(batch[0]), batch[1]);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      losses.push_back(loss.item<double>());
      ++step;
      show_progress(epoch, step, loader.size(), std::accumulate(losses.end() - step, losses.end(), 0.0) / double(step));
    }
    schedule.step();
  }
  return losses;
}

/// Percent of the images that are read right.
double accuracy(nn::Module& model, const Tensor& images, const Tensor& labels) {
  model.eval();
  const rush::NoGrad guard;
  return 100 * rush::sum(rush::argmax(model(images), 1) == labels).item<double>() / double(labels.numel());
}

int main(int argc, char** argv) try {
  rush::check(argc == 3, "usage: ", argv[0], " data/digits.npy folder");
  const std::string folder = argv[2];
  rush::default_generator().manual_seed(0);
  Tensor rows = read_rows(argv[1]);
  rows = rush::index(rows, {rush::randperm(rows.size(0))});
  const Tensor images = rush::view(rush::to(rush::narrow(rows, 1, 0, 64), rush::kFloat32), {-1, 1, 8, 8}) / 16;
  const Tensor labels = rush::to(rush::select(rows, 1, 64), rush::kInt64);
  const int64_t count = rows.size(0), held_out = count / 5;
  const rush::data::TensorDataset digits(
      {rush::narrow(images, 0, held_out, count - held_out), rush::narrow(labels, 0, held_out, count - held_out)});

  DigitNet model;
  const auto start = std::chrono::steady_clock::now();
  const std::vector<double> losses = train(model, digits);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  rush::save(model.state_dict(), folder + "/digits_cpp.pt");
  std::ofstream csv(folder + "/digits_cpp.csv");
  csv.precision(9);
  for (const double loss : losses) csv << loss << '\n';
  csv << seconds << '\n';

  const double percent = accuracy(model, rush::narrow(images, 0, 0, held_out), rush::narrow(labels, 0, 0, held_out));
  std::printf("held-out accuracy %.2f %% after %.1f s\n", percent, seconds);
  return percent >= 98 ? 0 : 1;
} catch (const rush::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
