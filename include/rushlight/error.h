// The error types. Each reads as one of PyTorch's exception types in Python.
#pragma once
#include <stdexcept>

namespace rush {

/// The base of all errors; RuntimeError in Python.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Memory could not be had; torch.OutOfMemoryError in Python.
struct OutOfMemoryError : Error {
  using Error::Error;
};

}  // namespace rush
