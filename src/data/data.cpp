// Batches of samples, in order or shuffled.
#include "rushlight/data.h"

#include <algorithm>
#include <numeric>

#include "kernels/cpu/pointwise.h"

namespace rush::data {
namespace {

/// Element `i` of the first dimension.
Tensor row(const Tensor& t, int64_t i) {
  return alias(t, Dims(t.sizes().begin() + 1, t.sizes().end()), Dims(t.strides().begin() + 1, t.strides().end()),
               t.storage_offset() + i * t.stride(0));
}

}  // namespace

std::vector<Tensor> Dataset::get_batch(const std::vector<int64_t>& indices) const {
  std::vector<Tensor> batch;
  for (size_t i = 0; i < indices.size(); ++i) {
    const std::vector<Tensor> sample = get(indices[i]);
    if (i == 0) {
      for (const Tensor& t : sample) {
        Dims sizes{int64_t(indices.size())};
        for (const int64_t size : t.sizes()) sizes.push_back(size);
        batch.push_back(allocate({.sizes = sizes, .dtype = t.dtype()}));
      }
    }
    check(sample.size() == batch.size(), "samples of a batch have ", batch.size(), " and ", sample.size(), " tensors");
    for (size_t k = 0; k < batch.size(); ++k) {
      Tensor place = row(batch[k], int64_t(i));
      check(place.sizes() == sample[k].sizes() && place.dtype() == sample[k].dtype(),
            "samples of a batch differ: ", place.sizes(), " ", place.dtype(), " and ", sample[k].sizes(), " ",
            sample[k].dtype());
      cpu::copy(place, sample[k]);
    }
  }
  return batch;
}

TensorDataset::TensorDataset(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
  check<ValueError>(!tensors_.empty(), "TensorDataset needs at least one tensor");
  for (const Tensor& t : tensors_) {
    check<ValueError>(t.dim() > 0, "TensorDataset takes no 0-dim tensor");
    check<ValueError>(t.size(0) == tensors_[0].size(0), "Size mismatch between tensors: ", tensors_[0].size(0), " and ",
                      t.size(0), " rows");
  }
}

std::vector<Tensor> TensorDataset::get(int64_t index) const {
  check<IndexError>(0 <= index && index < size(), "index ", index, " is out of bounds for size ", size());
  std::vector<Tensor> sample;
  for (const Tensor& t : tensors_) sample.push_back(row(t, index));
  return sample;
}

DataLoader::DataLoader(const Dataset& dataset, const DataLoaderOptions& options)
    : dataset_(dataset), options_(options) {
  check<ValueError>(options.batch_size > 0,
                    "batch_size should be a positive integer value, but got batch_size=", options.batch_size);
}

int64_t DataLoader::size() const {
  return (dataset_.size() + (options_.drop_last ? 0 : options_.batch_size - 1)) / options_.batch_size;
}

DataLoader::Iterator::Iterator(const DataLoader& loader)
    : dataset_(&loader.dataset_), options_(loader.options_), order_(size_t(loader.dataset_.size())) {
  const auto draw = [](Generator& generator) {
    int64_t value;
    random::integers(&value, 1, generator);
    return value;
  };
  // Python draws a seed for worker processes first, in every pass.
  draw(options_.generator ? *options_.generator : default_generator());
  if (!options_.shuffle) {
    std::iota(order_.begin(), order_.end(), 0);
  } else if (options_.generator) {
    random::permutation(order_.data(), int64_t(order_.size()), *options_.generator);
  } else {
    Generator generator(uint64_t(draw(default_generator())));
    random::permutation(order_.data(), int64_t(order_.size()), generator);
  }
  ++*this;
}

DataLoader::Iterator& DataLoader::Iterator::operator++() {
  const size_t count = std::min(size_t(options_.batch_size), order_.size() - next_);
  if (count == 0 || (options_.drop_last && count < size_t(options_.batch_size))) {
    batch_.clear();
    return *this;
  }
  const auto first = order_.begin() + std::ptrdiff_t(next_);
  batch_ = dataset_->get_batch({first, first + std::ptrdiff_t(count)});
  next_ += count;
  return *this;
}

}  // namespace rush::data
