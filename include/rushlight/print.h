// Tensors as text, character for character as PyTorch writes them in Python.
//
//   std::cout << x;                        // tensor([[1., 2.],
//                                          //         [3., 4.]])
//   rush::print_options().precision = 2;
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "rushlight/tensor.h"

namespace rush {

struct PrintOptions {
  int precision = 4;         // digits after the point
  int64_t threshold = 1000;  // tensors with more elements are summarised
  int64_t edgeitems = 3;     // what a summary shows at each end of a dimension
  int64_t linewidth = 80;
  std::optional<bool> sci_mode = {};  // whether to write 1.0000e+00; by the values if not set

  /// "default", "short" (two digits, two edge items) or "full" (never summarised). Throws ValueError for another name.
  static PrintOptions profile(std::string_view name);
};

/// The options used by all printing; assign to change them.
PrintOptions& print_options();

/// The text of a tensor. `prefix` opens it, and later lines are indented by its length.
std::string to_string(const Tensor& t, std::string_view prefix = "tensor(");

}  // namespace rush
