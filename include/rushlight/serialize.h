// Tensors to and from .pt files, which PyTorch and the Python package read and write too.
//
//   rush::save({{"weight", weight}, {"bias", bias}}, "model.pt");
//   for (auto& [name, tensor] : rush::load("model.pt")) std::cout << name << ' ' << tensor.sizes() << '\n';
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "rushlight/tensor.h"

namespace rush {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// Writes the tensors as a dict in this order, without their history. Tensors that share memory share it in the file
/// and when loaded. The file appears as a whole or, if an Error is thrown, not at all.
void save(const NamedTensors& tensors, const std::string& path);

/// Reads all tensors of a file in order. What lies in nested dicts and lists has the keys joined by dots as its name:
/// "model.conv.weight", "losses.0". With `mmap` the tensors use the file's own pages, read when first touched; writing
/// to them does not change the file. Throws Error where the file is broken or contains more than data.
NamedTensors load(const std::string& path, bool mmap = false);

}  // namespace rush
