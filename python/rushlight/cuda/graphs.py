"""CUDA graphs: work that is recorded once and then done again and again with one call."""

import gc

import rushlight as torch
from rushlight._C import _cuda

from .streams import Stream, stream


class CUDAGraph(_cuda.Graph):
    """Work recorded on a stream. `torch.cuda.graph` is the way to record one.

    Its kernels read and write the same memory at each `replay`: to give it other input, copy that into the tensors it was
    recorded with. The memory of all it allocates is its own until it dies or is `reset`.

    Recording allows one stream, and no step in which the host waits or draws random numbers: those raise RuntimeError.
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
