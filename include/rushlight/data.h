// Data sets and the loader of the C++ frontend. The same seed gives the same batches as in Python.
//
//   rush::data::TensorDataset digits({images, labels});
//   for (const auto& batch : rush::data::DataLoader(digits, {.batch_size = 64, .shuffle = true}))
//     train(batch[0], batch[1]);
#pragma once
#include <iterator>
#include <vector>

#include "rushlight/generator.h"
#include "rushlight/tensor.h"

namespace rush::data {

/// Samples with an index; a sample is a list of tensors.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  virtual std::vector<Tensor> get(int64_t index) const = 0;
  /// The samples of a batch, each of their tensors stacked along a new first dimension. Throws Error where shapes or
  /// dtypes of samples differ.
  virtual std::vector<Tensor> get_batch(const std::vector<int64_t>& indices) const;
};

/// Tensors with the same first dimension; sample i is the list of their elements i.
class TensorDataset : public Dataset {
 public:
  /// Throws ValueError where the first dimensions differ.
  explicit TensorDataset(std::vector<Tensor> tensors);
  int64_t size() const override { return tensors_[0].size(0); }
  std::vector<Tensor> get(int64_t index) const override;
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
};

struct DataLoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;
  bool drop_last = false;          // leave out a last batch that is not full
  Generator* generator = nullptr;  // where the shuffle is drawn; default: a new one, seeded by default_generator()
};

/// Iterates over a data set, which must outlive it, in batches. Each begin() starts a pass, with an order of its own.
class DataLoader {
 public:
  DataLoader(const Dataset& dataset, const DataLoaderOptions& options);

  /// How many batches a pass has.
  int64_t size() const;

  class Iterator {
   public:
    using value_type = std::vector<Tensor>;
    using difference_type = std::ptrdiff_t;
    const value_type& operator*() const { return batch_; }
    const value_type* operator->() const { return &batch_; }
    Iterator& operator++();
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return batch_.empty(); }

   private:
    friend class DataLoader;
    explicit Iterator(const DataLoader& loader);
    const Dataset* dataset_;
    DataLoaderOptions options_;
    std::vector<int64_t> order_;
    size_t next_ = 0;
    value_type batch_;
  };
  Iterator begin() const { return Iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  const Dataset& dataset_;
  DataLoaderOptions options_;
};

}  // namespace rush::data
