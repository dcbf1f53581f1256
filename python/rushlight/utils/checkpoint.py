"""Checkpointing: instead of keeping what backward needs of a part of the model, compute that part again."""

import warnings
from contextlib import ExitStack, nullcontext

import rushlight as torch
from rushlight import _C
from rushlight.autograd import Function
from rushlight.autograd.graph import saved_tensors_hooks

__all__ = ["CheckpointError", "CheckpointFunction", "checkpoint", "checkpoint_sequential", "noop_context_fn"]


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function did not do what the first one did."""


def noop_context_fn():
    """Two contexts that do nothing, for the first and for the second run."""
    return nullcontext(), nullcontext()


class _State:
    """The state of autocast and of the random generators, to run a function in the same types with the same numbers."""

    def __init__(self, preserve):
        self.autocast = [
            (name, torch.get_autocast_dtype(name), torch.is_autocast_enabled(name)) for name in ("cpu", "cuda")
        ]
        self.autocast_cache = torch.is_autocast_cache_enabled()
        self.state = torch.get_rng_state() if preserve else None
        cuda = getattr(torch, "cuda", None)
        self.cuda = cuda if preserve and cuda is not None and cuda.is_available() else None
        self.cuda_states = self.cuda.get_rng_state_all() if self.cuda else None

    def run(self, function, *args, **kwargs):
        with ExitStack() as stack:
            for name, dtype, enabled in self.autocast:
                stack.enter_context(torch.autocast(name, dtype, enabled, self.autocast_cache))
            stack.enter_context(torch.random.fork_rng(enabled=self.state is not None))
            if self.state is not None:
                torch.set_rng_state(self.state)
            if self.cuda:
                self.cuda.set_rng_state_all(self.cuda_states)
            return function(*args, **kwargs)


class CheckpointFunction(Function):
    """The re-entrant way: forward runs unrecorded; backward runs it again, recorded, and runs a backward through it."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        """Runs the function, unrecorded."""
        if not any(isinstance(a, torch.Tensor) and a.requires_grad for a in args):
            warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=3)
        ctx.run_function = run_function
        ctx.rng = _State(preserve_rng_state)
        ctx.inputs = [None if isinstance(a, torch.Tensor) else a for a in args]
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, torch.Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        return run_function(*args)

    @staticmethod
    def backward(ctx, *grads):
        """Runs the function again and differentiates it."""
        inputs = list(ctx.inputs)
        for i, saved in zip(ctx.places, ctx.saved_tensors):
            inputs[i] = saved.detach().requires_grad_(saved.requires_grad)
        with torch.enable_grad():
            outputs = ctx.rng.run(ctx.run_function, *inputs)
        outputs = (outputs,) if isinstance(outputs, torch.Tensor) else outputs
        pairs = [(o, g) for o, g in zip(outputs, grads) if isinstance(o, torch.Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, None, *(x.grad if isinstance(x, torch.Tensor) else None for x in inputs)


class _SaveInputs(Function):
    """Keeps the inputs as any node does, so that version checks and the hooks of a checkpoint around this one apply."""

    @staticmethod
    def forward(ctx, anchor, *tensors):
        ctx.save_for_backward(*tensors)
        return torch.empty(0)

    @staticmethod
    def backward(ctx, grad):
        raise AssertionError("nothing depends on this result")


class _StopRecomputation(Exception):
    """All that backward needs has been computed."""


class _Frame:
    """A checkpointed call. Its graph holds numbers where tensors would be saved; the first that is asked for in a
    backward makes the function run again, and what that run saves, in the same order, are the tensors."""

    def __init__(self, function, args, kwargs, preserve_rng_state, early_stop, compare, context):
        self.function, self.kwargs, self.context = function, kwargs, context
        self.early_stop, self.compare = early_stop, compare
        self.places = [i for i, a in enumerate(args) if isinstance(a, torch.Tensor)]
        self.args = [None if isinstance(a, torch.Tensor) else a for a in args]
        self.required = [args[i].requires_grad for i in self.places]
        anchor = torch.empty(0, requires_grad=True)
        self.inputs = _SaveInputs.apply(anchor, *(args[i] for i in self.places))
        self.rng = _State(preserve_rng_state)
        self.described = []  # shape, dtype and device of each tensor that forward saved
        self.task, self.tensors = None, {}  # the backward that is running, and what was recomputed for it

    def pack(self, x):
        self.described.append((x.shape, x.dtype, x.device))
        return len(self.described) - 1

    def unpack(self, number):
        task = _C._current_graph_task_id()
        if task != self.task or number not in self.tensors:
            self.task = task
            self.recompute()
        return self.tensors.pop(number)

    def recompute(self):
        self.tensors = tensors = {}
        expected, count = len(self.described), 0

        def keep(x):
            nonlocal count
            if count < expected:
                tensors[count] = x.detach()
            count += 1
            if self.early_stop and count == expected:
                raise _StopRecomputation
            return x

        args = list(self.args)
        for i, saved, required in zip(self.places, self.inputs.grad_fn.saved_tensors, self.required):
            # What a checkpoint around this one has recomputed comes without history; but what is saved depends on
            # which inputs need gradients.
            args[i] = saved if saved.requires_grad == required else saved.detach().requires_grad_(required)
        try:
            with self.context, saved_tensors_hooks(keep, lambda x: x), torch.enable_grad():
                self.rng.run(self.function, *args, **self.kwargs)
        except _StopRecomputation:
            pass
        if count != expected:
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {expected}\n"
                f"Number of tensors saved during recomputation: {count}."
            )
        if not self.compare:
            return
        for i, (shape, dtype, device) in enumerate(self.described):
            x = tensors[i]
            if (x.shape, x.dtype, x.device) != (shape, dtype, device):
                raise CheckpointError(
                    "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                    f"during the forward pass.\ntensor at position {i}:\nsaved: {tuple(shape)}, {dtype}, {device}\n"
                    f"recomputed: {tuple(x.shape)}, {x.dtype}, {x.device}"
                )


def checkpoint(
    function,
    *args,
    use_reentrant=None,
    preserve_rng_state=True,
    context_fn=noop_context_fn,
    determinism_check="default",
    debug=False,
    early_stop=True,
    **kwargs,
):
    """Calls ``function(*args, **kwargs)`` without keeping what its backward needs: backward calls it again.

    Args:
        function (callable): a part of a model; both calls must do the same.
        use_reentrant (bool): True for the older way, which takes no keyword arguments, needs an input that requires grad
            and does not work with ``autograd.grad``. False is better; not to choose warns and means True.
        preserve_rng_state (bool): give the second call the random numbers of the first.
        context_fn (callable): returns two context managers, around the first and around the second call.
        determinism_check (str): "default" compares shapes, dtypes and devices of both calls, "none" does not.
        debug (bool): accepted.
        early_stop (bool): end the second call as soon as it has computed what is needed.

    Raises CheckpointError in backward where the second call differs. The last four are for ``use_reentrant=False``.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly; use_reentrant=False is "
            "recommended. Without it, True is assumed.",
            stacklevel=2,
        )
        use_reentrant = True
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'] but got {determinism_check}")
    forward_context, recompute_context = context_fn()
    if not torch.is_grad_enabled():
        with forward_context:
            return function(*args, **kwargs)
    compare = determinism_check == "default"
    frame = _Frame(function, args, kwargs, preserve_rng_state, early_stop, compare, recompute_context)
    with saved_tensors_hooks(frame.pack, frame.unpack), forward_context:
        return function(*args, **kwargs)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, *, preserve_rng_state=True):
    """Runs functions one after the other, in segments that are checkpointed, all but the last.

    Args:
        functions (Sequential or list): what to run.
        segments (int): how many.
        input (Tensor): of the first function.
        use_reentrant, preserve_rng_state: see `checkpoint`.
    """
    if isinstance(functions, torch.nn.Sequential):
        functions = list(functions.children())

    def run(some):
        def forward(x):
            for f in some:
                x = f(x)
            return x

        return forward

    size = len(functions) // segments
    done = 0
    for _ in range(segments - 1):
        part = run(functions[done : done + size])
        input = checkpoint(part, input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
        done += size
    return run(functions[done:])(input)
