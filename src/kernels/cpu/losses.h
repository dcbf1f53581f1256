// Losses that are one pass over memory. Classes are dimension 1, or 0 of a 1-dim input; targets have the input's sizes
// without it.
#pragma once
#include "rushlight/tensor.h"

namespace rush::cpu {

/// The last four are those of binary_cross_entropy, the same with logits, and kl_div without and with the target's
/// logarithm.
enum class PairLoss { squared, smooth, huber, entropy, logit_entropy, divergence, log_divergence };
/// The loss of each pair into out, of the inputs' sizes; or where out has one element and `reduce`, the sum of all,
/// times `scale`. out is contiguous and floating, and a and b are taken as its dtype; `width` is where smooth and huber
/// turn from a parabola to a line. On the CPU throws Error where the entropy's input is no probability.
void pair_loss(Tensor& out, const Tensor& a, const Tensor& b, PairLoss kind, double width, bool reduce, double scale);

/// out = input[target], 0 where the target is ignore_index. Throws IndexError for another target outside [0, classes).
void pick_class(Tensor& out, const Tensor& input, const Tensor& target, int64_t ignore_index);
/// Zeros, and the input at the target's place.
void put_class(Tensor& out, const Tensor& input, const Tensor& target, int64_t ignore_index);
/// log_sum = log of the sum of exp(input) over the classes; losses = log_sum - input[target], 0 where ignored.
void class_losses(Tensor& losses, Tensor& log_sum, const Tensor& input, const Tensor& target, int64_t ignore_index);
/// out = grad * (p - [class is target]) + grad_log_sum * p with p = exp(input - log_sum); grad counts as 0 where
/// ignored.
void class_losses_backward(Tensor& out, const Tensor& grad, const Tensor& grad_log_sum, const Tensor& input,
                           const Tensor& target, const Tensor& log_sum, int64_t ignore_index);

/// The multi-label hinge loss of each row, and its slope in each input. A row of targets ends at its first -1.
void label_margins(Tensor& losses, Tensor& slopes, const Tensor& input, const Tensor& target);

/// Minus the logarithm of the probability of each target, over all its alignments. log_probs is (time, batch, classes);
/// targets are (batch, longest) or joined one after the other.
void ctc_losses(Tensor& out, const Tensor& log_probs, const Tensor& targets, Ints input_lengths, Ints target_lengths,
                int64_t blank);
void ctc_losses_backward(Tensor& out, const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                         Ints input_lengths, Ints target_lengths, int64_t blank);

}  // namespace rush::cpu
