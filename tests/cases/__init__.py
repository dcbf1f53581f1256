"""The rows. Operators without one are listed here, with what tests them."""

_INSIDE = {  # steps of another operator, whose row runs them and, by its gradients, their backward
    "cross_entropy": ("_class_losses", "_class_losses_backward", "_pick_class", "_put_class"),
    "binary_cross_entropy": ("_pair_losses",),
    "multilabel_margin_loss": ("_label_margins",),
    "ctc_loss": ("_ctc_losses", "_ctc_losses_backward"),
    "layer_norm": ("_layer_norm_backward",),
    "batch_norm": ("_batch_norm_backward",),
    "conv2d": ("_convolution_weight_grad",),
    "max_pool2d": ("_max_pool", "_max_pool_values", "_pool_gather", "_pool_scatter"),
    "max_unpool2d": ("_max_unpool",),
    "avg_pool2d": ("_avg_pool", "_avg_pool_backward"),
    "fractional_max_pool2d": ("_fractional_max_pool",),
    "rrelu": ("_random_slopes",),
    "upsample": ("_resample", "_resample_backward"),
    "grid_sample": ("_grid_sampler_backward",),
    "fft_fftn": ("_fft_c2c",),
    "fft_rfftn": ("_fft_r2c",),
    "fft_irfftn": ("_fft_c2r",),
}
TESTED_ELSEWHERE = {
    **dict.fromkeys(("cuda", "pin_memory", "is_pinned"), "they need a GPU: tests/cuda/test_devices.py"),
    "_basic_index": "what x[key] records: test_print.py and tests/cpp/indexing_test.cpp",
    **dict.fromkeys(("gru", "lstm", "rnn_relu", "rnn_tanh"), "whole networks: test_recurrent.py"),
    **{name: row for row, names in _INSIDE.items() for name in names},
}
