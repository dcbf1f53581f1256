"""CUDA graphs: work that is recorded once and then done again and again with one call."""

import gc

import rushlight as torch
from rushlight._C import _cuda

from ..autograd.function import Function, once_differentiable
from .streams import Stream, stream


class CUDAGraph(_cuda.Graph):
    """Work recorded on a stream. `torch.cuda.graph` is the way to record one.

    Its kernels read and write the same memory at each `replay`: to give it other input, copy that into the tensors it was
    recorded with. The memory of all it allocates is its own until it dies or is `reset`.

    Random numbers are new ones at each replay, those that the same work outside of a graph would draw from the device's
    default generator. Recording allows one stream and no step in which the host waits: RuntimeError.
    """

    def __init__(self, keep_graph=False):
        super().__init__()

    def capture_begin(self, pool=None, capture_error_mode="global"):
        """Records what is put on the current stream from here on. `pool` is ignored: each graph has memory of its own."""
        super().capture_begin()

    def pool(self):
        """Names this graph's memory; nothing can be done with it here."""
        return (0, id(self))


class graph:
    """Records what a block does: ``with torch.cuda.graph(g): y = model(x)``. The block's work is not done before `replay`.

    Args:
        cuda_graph (CUDAGraph): what to record into.
        pool: ignored, each graph has memory of its own.
        stream (Stream, optional): where to record; a side stream if not given.
    """

    def __init__(self, cuda_graph, pool=None, stream=None, capture_error_mode="global"):
        self.graph = cuda_graph
        self.stream = stream

    def __enter__(self):
        torch.cuda.synchronize()
        gc.collect()
        torch.cuda.empty_cache()
        self._context = stream(self.stream or Stream())
        self._context.__enter__()
        try:
            self.graph.capture_begin()
        except BaseException:
            self._context.__exit__(None, None, None)
            raise

    def __exit__(self, *error):
        try:
            self.graph.capture_end()
        finally:
            self._context.__exit__(*error)
        return False


def graph_pool_handle():
    """A name for memory to share between graphs; each graph has memory of its own here."""
    return (0, 0)


def is_current_stream_capturing():
    """Whether the current stream is being recorded."""
    return _cuda.started() and _cuda.is_capturing(_cuda.current_stream(_cuda.current_device()))


def make_graphed_callables(callables, sample_args, num_warmup_iters=3, allow_unused_input=False, pool=None):
    """Functions or modules that do what the given ones do, forward and backward, by replaying graphs.

    Args:
        callables (Callable or Module, or a tuple of them): return a tensor or a tuple of tensors. A module is changed in
            place: it replays while it is in the mode (training or not) that it was recorded in, and otherwise runs.
        sample_args (tuple of tensors, or a tuple of those): shaped like all later arguments, and requiring gradients
            where those will.
        num_warmup_iters (int): runs before recording.
        allow_unused_input (bool): whether inputs may have no effect, and gradients of None.
        pool: ignored, each graph has memory of its own.

    What a call returns is overwritten by the next. RuntimeError for modules with hooks, for autocast with a cache, and for
    what a graph cannot record.
    """
    if torch.is_autocast_enabled() and torch.is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables does not support the autocast caching. Please set `cache_enabled=False`."
        )
    several = isinstance(callables, tuple)
    pairs = zip(callables, sample_args, strict=True) if several else [(callables, sample_args)]
    graphed = tuple(_graphed(f, args, num_warmup_iters, allow_unused_input) for f, args in pairs)
    return graphed if several else graphed[0]


class _Recorded:
    """The graphs of a function and the tensors that they read and write."""

    def __init__(self, function, args, parameters, warmup, allow_unused):
        self.args = tuple(a.detach().clone().requires_grad_(a.requires_grad) for a in args)
        self.inputs = self.args + parameters
        self.forward, self.backward = CUDAGraph(), CUDAGraph()
        wanted = [x for x in self.inputs if x.requires_grad]
        side = Stream()

        def gradients(outputs, grads):
            pairs = [(y, g) for y, g in zip(outputs, grads) if g is not None]
            if not pairs or not wanted:
                return [None] * len(wanted)
            ys, gs = zip(*pairs)
            return torch.autograd.grad(ys, wanted, gs, allow_unused=allow_unused)

        side.wait_stream(torch.cuda.current_stream())
        with stream(side):
            for _ in range(warmup):
                outputs = self._flat(function(*self.args))
                gradients(outputs, [torch.ones_like(y) if y.requires_grad else None for y in outputs])
            del outputs
        torch.cuda.current_stream().wait_stream(side)
        with graph(self.forward, stream=side):
            outputs = self._flat(function(*self.args))
        self.grads = [torch.empty_like(y) if y.requires_grad else None for y in outputs]
        with graph(self.backward, stream=side):
            found = iter(gradients(outputs, self.grads))
        self.input_grads = [next(found) if x.requires_grad else None for x in self.inputs]
        self.outputs = tuple(y.detach() for y in outputs)

    def _flat(self, result):
        self.single = torch.is_tensor(result)
        result = (result,) if self.single else result
        if not isinstance(result, tuple) or not all(map(torch.is_tensor, result)):
            raise TypeError(
                f"a graphed callable must return a tensor or a tuple of tensors, not {type(result).__name__}"
            )
        return result


class _Replay(Function):
    @staticmethod
    def forward(ctx, recorded, *inputs):
        ctx.recorded = recorded
        for mine, given in zip(recorded.args, inputs):
            if given.shape != mine.shape or given.dtype != mine.dtype or given.device != mine.device:
                raise RuntimeError(
                    f"the graph was recorded for {mine.dtype} of shape {tuple(mine.shape)} on {mine.device}, got "
                    f"{given.dtype} of shape {tuple(given.shape)} on {given.device}"
                )
            if mine.data_ptr() != given.data_ptr():
                mine.detach().copy_(given)
        recorded.forward.replay()
        results = tuple(y.detach() for y in recorded.outputs)
        ctx.mark_non_differentiable(*(y for y, g in zip(results, recorded.grads) if g is None))
        return results

    @staticmethod
    @once_differentiable
    def backward(ctx, *grads):
        recorded = ctx.recorded
        for mine, given in zip(recorded.grads, grads):
            if mine is not None and mine.data_ptr() != given.data_ptr():
                mine.copy_(given)
        recorded.backward.replay()
        return None, *(None if g is None else g.detach() for g in recorded.input_grads)


def _graphed(function, args, warmup, allow_unused):
    module = function if isinstance(function, torch.nn.Module) else None
    if not all(map(torch.is_tensor, args)):
        raise TypeError("sample_args must be tensors")
    if module and (module._forward_hooks or module._forward_pre_hooks or module._backward_hooks):
        raise RuntimeError("Modules must not have hooks registered at the time they are passed.")
    parameters = tuple(module.parameters()) if module else ()
    recorded = _Recorded(function, args, parameters, warmup, allow_unused)

    def replay(*args):
        results = _Replay.apply(recorded, *args, *parameters)
        return results[0] if recorded.single else results

    if not module:
        return replay
    original, training = module.forward, module.training
    module.forward = lambda *args, **kwargs: (
        replay(*args) if module.training == training and not kwargs else original(*args, **kwargs)
    )
    return module
