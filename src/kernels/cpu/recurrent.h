// One layer of a recurrent network over all steps of a sequence, with its gradients: contiguous float or double.
//
// The rows of all steps lie one after another, sizes[t] of them for step t; row i of each step belongs to sequence i.
// States are (batch, hidden), where batch is the largest of `sizes`: a sequence that is over, or backwards one that has
// not begun, keeps its row.
#pragma once
#include "rushlight/tensor.h"

namespace rush::cpu {

enum class Cell : uint8_t { lstm, gru, tanh, relu };

/// Gates of a cell: input, forget, cell, output; or reset, update, new.
constexpr int64_t gate_count(Cell cell) { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }
/// What backward needs of a step, in units of the hidden size: the gates and c; the gates and the state's part of the
/// new gate; nothing but the output.
constexpr int64_t kept_count(Cell cell) { return cell == Cell::lstm ? 5 : cell == Cell::gru ? 4 : 0; }

struct Recurrence {
  Cell cell;
  Ints sizes;
  bool reverse;
};

/// gates: the input's part (rows, gates * hidden), with all biases but b_hh. h and c come with the first states and
/// leave with the last; c is the LSTM's alone. `kept` may be undefined.
void recurrence(const Recurrence& r, const Tensor& gates, const Tensor& w_hh, const Tensor& b_hh, Tensor& output,
                Tensor& h, Tensor& c, Tensor& kept);

/// The gradient of the output may be undefined. dh and dc come with the gradients of the last states and leave with
/// those of the first. dw_hh and db_hh may be undefined.
void recurrence_backward(const Recurrence& r, const Tensor& grad, const Tensor& output, const Tensor& kept,
                         const Tensor& h0, const Tensor& c0, const Tensor& w_hh, Tensor& dgates, Tensor& dh, Tensor& dc,
                         Tensor& dw_hh, Tensor& db_hh);

}  // namespace rush::cpu
