// A user's program: what the installed headers and library must carry.
#include <rushlight/rushlight.h>

#include <cstdio>

int main() {
  const rush::Tensor x = rush::full({2, 3}, 2.0).requires_grad_();
  rush::sum(x * x).backward();
  rush::save({{"grad", x.grad()}}, "consumer.pt");
  const auto read = rush::load("consumer.pt");
  std::remove("consumer.pt");
  const double sum = rush::sum(read.at(0).second).item<double>();
  std::printf("%g\n", sum);
  return sum == 24 ? 0 : 1;
}
