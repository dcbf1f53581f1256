"""Functions of functions: derivatives of functions of nested containers of tensors, and functions mapped over a batch.

Note [Levels]: a transform calls the function with tensors of its own in place of the arguments. Where an argument needs a
gradient anyway, as within another transform, its stand-in is a view of it, so that what is computed can be differentiated on;
where neither it nor anything else that the function used does, nothing is recorded beyond what the derivative itself takes.
"""

from functools import wraps

import rushlight as torch
from rushlight.nn.utils import stateless

__all__ = [
    "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "stack_module_state",
    "vjp", "vmap",
]  # fmt: skip

# ---- nested containers ----

_LEAF = "*"


def _flatten(tree):
    """The leaves of nested tuples, lists and dicts, and their structure: kinds, keys and structures of elements."""
    if isinstance(tree, dict):
        keys, items = tuple(tree), list(tree.values())
    elif isinstance(tree, (tuple, list)):
        keys, items = None, list(tree)
    else:
        return [tree], _LEAF
    parts = [_flatten(item) for item in items]
    return [leaf for leaves, _ in parts for leaf in leaves], (type(tree), keys, tuple(inner for _, inner in parts))


def _unflatten(structure, leaves):
    """The containers again; `leaves` is an iterator over what is to be in them."""
    if structure == _LEAF:
        return next(leaves)
    kind, keys, inner = structure
    items = [_unflatten(s, leaves) for s in inner]
    if keys is not None:
        return kind(zip(keys, items))
    return kind(*items) if hasattr(kind, "_fields") else kind(items)


def _map(function, tree):
    leaves, structure = _flatten(tree)
    return _unflatten(structure, map(function, leaves))


# ---- what derivatives have in common ----


def _stand_in(x):
    """See Note [Levels]."""
    if not isinstance(x, torch.Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
    return x.view_as(x) if x.requires_grad else x.detach().requires_grad_()


def _lead_elsewhere(tensors, own):
    """Whether tensors were computed from leaves that need a gradient other than `own`."""
    own = {id(x) for x in own}
    if any(t.requires_grad and t.is_leaf and id(t) not in own for t in tensors):
        return True
    waiting = [t.grad_fn for t in tensors if t.grad_fn is not None]
    seen = {id(node): node for node in waiting}
    while waiting:
        node = waiting.pop()
        if node.name() == "AccumulateGrad" and id(node.variable) not in own:
            return True
        for after, _ in node.next_functions:
            if after is not None and id(after) not in seen:
                seen[id(after)] = after
                waiting.append(after)
    return False


def _out(tree, own):
    """Results as the caller gets them: without history where that leads to the stand-ins only."""
    keeps = torch.is_grad_enabled()

    def one(leaf):
        if not isinstance(leaf, torch.Tensor) or not leaf.requires_grad:
            return leaf
        return leaf if keeps and _lead_elsewhere([leaf], own) else leaf.detach()

    return _map(one, tree)


def _split_aux(result, has_aux, caller):
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(f"{caller}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return result


def _choose(args, argnums):
    """The arguments to differentiate by, and a function that puts others in their place."""
    if not isinstance(argnums, (int, tuple)) or not all(isinstance(n, int) for n in _flatten(argnums)[0]):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
    places = [n % len(args) for n in numbers]
    if len(set(places)) != len(places):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")

    def place(chosen):
        full = list(args)
        for n, value in zip(places, chosen if isinstance(argnums, tuple) else (chosen,)):
            full[n] = value
        return full

    return tuple(args[n] for n in places) if isinstance(argnums, tuple) else args[places[0]], place


class _Recorded:
    """A call of a function with stand-ins: `inputs` and `outputs` are the leaves of both."""

    def __init__(self, call, primals, has_aux, caller):
        leaves, self.structure = _flatten(primals)
        with torch.enable_grad():
            self.inputs = [_stand_in(x) for x in leaves]
            result = call(_unflatten(self.structure, iter(self.inputs)))
            self.result, self.aux = _split_aux(result, has_aux, caller)
        self.outputs, self.out_structure = _flatten(self.result)
        for output in self.outputs:
            if not isinstance(output, torch.Tensor):
                raise RuntimeError(f"{caller}: expected f to return only tensors, got unsupported type {type(output)}")
        self.goes_on = torch.is_grad_enabled() and _lead_elsewhere(self.outputs, self.inputs)

    def leave(self, tree):
        return _out(tree, self.inputs)

    def pull(self, cotangents, outputs=None, create_graph=False):
        """The gradients by the inputs, zeros where there are none, of some of the outputs."""
        outputs = self.outputs if outputs is None else outputs
        pairs = [(o, c) for o, c in zip(outputs, cotangents) if o.requires_grad]
        if not pairs:
            return [torch.zeros_like(x, requires_grad=False) for x in self.inputs]
        create_graph = create_graph or self.goes_on or any(c.requires_grad for _, c in pairs)
        with torch.enable_grad():
            grads = torch.autograd.grad(
                *([o for o, _ in pairs], self.inputs, [c for _, c in pairs]),
                retain_graph=True, create_graph=create_graph, allow_unused=True,
            )  # fmt: skip
        return [torch.zeros_like(x, requires_grad=False) if g is None else g for x, g in zip(self.inputs, grads)]

    def pusher(self):
        """The function from tangents of the inputs to those of the outputs: `pull` is linear, and this its transpose."""
        seeds = [torch.zeros_like(o).requires_grad_() for o in self.outputs if o.requires_grad]
        at = iter(seeds)
        pulled = self.pull([next(at) if o.requires_grad else None for o in self.outputs], create_graph=True)

        def push(tangents):
            pairs = [(p, t) for p, t in zip(pulled, tangents) if p.requires_grad]
            moved = [None] * len(seeds)
            if pairs:
                create_graph = self.goes_on or any(t.requires_grad for _, t in pairs)
                with torch.enable_grad():
                    moved = torch.autograd.grad(
                        *([p for p, _ in pairs], seeds, [t for _, t in pairs]),
                        retain_graph=True, create_graph=create_graph, allow_unused=True,
                    )  # fmt: skip
            made = iter(moved)
            found = [next(made) if o.requires_grad else None for o in self.outputs]
            zeros = (torch.zeros_like(o, requires_grad=False) for o in self.outputs)
            return [z if f is None else f for f, z in zip(found, zeros)]

        return push, seeds


# ---- gradients ----


def grad_and_value(func, argnums=0, has_aux=False):
    """Returns a function that computes the gradient of `func`, which returns a 0-dim tensor, and its value.

    Args:
        func (callable): takes tensors, or nested containers of them, and returns a 0-dim tensor.
        argnums (int or tuple of ints): by which arguments to differentiate; a tuple gives a tuple of gradients.
        has_aux (bool): `func` returns ``(value, aux)``, and the result is ``(gradient, (value, aux))``.

    The gradient has the structure of the arguments. Raises RuntimeError where the value is no 0-dim tensor.
    """

    @wraps(func)
    def wrapper(*args, **kwargs):
        caller = "grad_and_value(f)(*args)"
        chosen, place = _choose(args, argnums)

        def call(values):
            result = func(*place(values), **kwargs)
            value = _split_aux(result, has_aux, caller)[0]
            if not isinstance(value, torch.Tensor):
                raise RuntimeError(f"{caller}: Expected f(*args) to return a Tensor, got {type(value)}")
            if value.dim():
                raise RuntimeError(
                    f"{caller}: Expected f(*args) to return a scalar Tensor, got tensor with {value.dim()} dims. Maybe "
                    "you wanted to use the vjp or jacrev APIs instead?"
                )
            return result

        run = _Recorded(call, chosen, has_aux, caller)
        gradient = _unflatten(run.structure, iter(run.pull([torch.ones_like(run.result, requires_grad=False)])))
        value = (run.result, run.aux) if has_aux else run.result
        return run.leave(gradient), run.leave(value)

    return wrapper


def grad(func, argnums=0, has_aux=False):
    """Returns a function that computes the gradient of `func`; with `has_aux`, ``(gradient, aux)``.

    As `grad_and_value` without the value. Can be nested: ``grad(grad(torch.sin))(x)`` is ``-sin(x)``.
    """

    @wraps(func)
    def wrapper(*args, **kwargs):
        gradient, value = grad_and_value(func, argnums, has_aux)(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


def vjp(func, *primals, has_aux=False):
    """Calls a function and returns ``(output, vjp_fn)``, with `has_aux` ``(output, vjp_fn, aux)``.

    ``vjp_fn(*cotangents)``, the cotangents shaped and nested as the output, is a tuple of products of these with the
    Jacobian, one for each of `primals`. It can be called any number of times.
    """
    run = _Recorded(lambda args: func(*args), primals, has_aux, "vjp(f, *primals)")

    def vjp_fn(*cotangents):
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        leaves, structure = _flatten(given)
        if structure != run.out_structure:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                f"cotangents: {structure}, primal output: {run.out_structure}"
            )
        return run.leave(_unflatten(run.structure, iter(run.pull(leaves))))

    output = run.leave(run.result)
    return (output, vjp_fn, run.leave(run.aux)) if has_aux else (output, vjp_fn)


def _check_tangents(primals, tangents, caller):
    for value, what in ((primals, "primals"), (tangents, "tangents")):
        if not isinstance(value, tuple):
            raise RuntimeError(f"{caller}: Expected {what} to be a tuple. E.g. it should be valid to call f(*primals).")
    (points, structure), (directions, other) = _flatten(primals), _flatten(tangents)
    if structure != other:
        raise RuntimeError(
            f"{caller}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got {structure} and {other}"
        )
    for x, t in zip(points, directions):
        if isinstance(x, torch.Tensor) and (not isinstance(t, torch.Tensor) or x.shape != t.shape):
            raise RuntimeError(
                f"{caller}: a tangent must have the shape of its primal, {list(x.shape)}, but is "
                f"{list(t.shape) if isinstance(t, torch.Tensor) else t!r}"
            )
    return directions


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """Calls a function and returns its output and the product of its Jacobian with `tangents`; with `has_aux` aux too.

    Args:
        func (callable): takes tensors, or nested containers of them, and returns such.
        primals (tuple): its arguments.
        tangents (tuple): the directions, shaped and nested as `primals`.
        strict (bool): raise RuntimeError where an output does not depend on the arguments, instead of giving zeros.

    Computed by differentiating the other product, `vjp`, by its vector.
    """
    directions = _check_tangents(primals, tangents, "jvp(f, primals, tangents)")
    run = _Recorded(lambda args: func(*args), primals, has_aux, "jvp(f, primals, tangents)")
    if strict and not all(o.requires_grad for o in run.outputs):
        raise RuntimeError("jvp(f, primals, tangents): The output of f is independent of inputs, with strict=True.")
    push, seeds = run.pusher()
    product = _out(_unflatten(run.out_structure, iter(push(directions))), [*run.inputs, *seeds])
    output = run.leave(run.result)
    return (output, product, run.leave(run.aux)) if has_aux else (output, product)


def linearize(func, *primals):
    """Calls a function and returns its output and the linear function ``jvp_fn(*tangents)`` of its Jacobian there."""
    run = _Recorded(lambda args: func(*args), primals, False, "linearize(f, *primals)")
    push, seeds = run.pusher()

    def jvp_fn(*tangents):
        directions = _check_tangents(primals, tangents, "linearize(f, *primals)")
        return _out(_unflatten(run.out_structure, iter(push(directions))), [*run.inputs, *seeds])

    return run.leave(run.result), jvp_fn


# ---- whole Jacobians ----


def _basis(x):
    """Tensors like `x` with a single one, at each of its places in turn."""
    for i in range(x.numel()):
        unit = torch.zeros(x.numel(), dtype=x.dtype, device=x.device)
        unit[i] = 1
        yield unit.reshape(x.shape)


def _by_rows(run):
    """For each output and each input the derivative, shaped as the output's sizes and then the input's."""
    for o in run.outputs:
        rows = [run.pull([unit], [o]) for unit in _basis(o)]
        yield [
            torch.stack([row[j] for row in rows]).reshape(o.shape + x.shape) if rows else x.new_zeros(o.shape + x.shape)
            for j, x in enumerate(run.inputs)
        ]


def _by_columns(run):
    """The same, a column at a time."""
    push, _ = run.pusher()
    zeros = [torch.zeros_like(x, requires_grad=False) for x in run.inputs]
    columns = [[push([*zeros[:j], unit, *zeros[j + 1 :]]) for unit in _basis(x)] for j, x in enumerate(run.inputs)]
    for i, o in enumerate(run.outputs):
        yield [
            torch.stack([column[i] for column in columns[j]], -1).reshape(o.shape + x.shape)
            if columns[j]
            else o.new_zeros(o.shape + x.shape)
            for j, x in enumerate(run.inputs)
        ]


def _jacobian(func, argnums, has_aux, caller, blocks):
    @wraps(func)
    def wrapper(*args, **kwargs):
        chosen, place = _choose(args, argnums)
        for i, x in enumerate(_flatten(chosen)[0]):
            if isinstance(x, torch.Tensor) and x.is_complex():
                raise RuntimeError(
                    f"{caller}: Expected all inputs to be real but received complex tensor at flattened input idx: {i}"
                )
        run = _Recorded(lambda values: func(*place(values), **kwargs), chosen, has_aux, caller)
        matrices = [_unflatten(run.structure, iter(run.leave(row))) for row in blocks(run)]
        result = _unflatten(run.out_structure, iter(matrices))
        return (result, run.leave(run.aux)) if has_aux else result

    return wrapper


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """Returns a function that computes the Jacobian of `func`, a row at a time: for functions with few outputs.

    Args:
        func (callable): takes tensors, or nested containers of them, and returns such.
        argnums (int or tuple of ints): by which arguments to differentiate; a tuple gives a tuple of Jacobians.
        has_aux (bool): `func` returns ``(output, aux)``, and the result is ``(Jacobian, aux)``.
        chunk_size (int, optional): accepted; rows are computed one after another.

    The Jacobian is nested as the output, in each place as the arguments, and shaped as the one's sizes and then the other's.
    Raises RuntimeError for complex arguments.
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")
    return _jacobian(func, argnums, has_aux, "jacrev", _by_rows)


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """As `jacrev`, a column at a time: for functions with few inputs. `func` is called once, so `randomness` is without effect."""
    _check_randomness(randomness)
    return _jacobian(func, argnums, has_aux, "jacfwd", _by_columns)


def hessian(func, argnums=0):
    """Returns a function that computes the second derivatives of `func`: the Jacobian of its Jacobian."""
    return jacrev(jacrev(func, argnums), argnums)


# ---- modules ----


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """``module(*args, **kwargs)`` with other tensors in place of its parameters and buffers.

    Args:
        module (nn.Module): is as before afterwards.
        parameter_and_buffer_dicts (dict or sequence of dicts): tensors by dotted name; no name in two dicts.
        args (tuple, or the single argument), kwargs (dict): for the module.
        tie_weights (bool): a replaced tensor is replaced under all its names.
        strict (bool): raise RuntimeError unless the names are all of the module's.
    """
    dicts = parameter_and_buffer_dicts
    if not isinstance(dicts, dict):
        if not isinstance(dicts, (list, tuple)) or not all(isinstance(d, dict) for d in dicts):
            raise ValueError(
                f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
            )
        names = [name for d in dicts for name in d]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{twice} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        dicts = {name: tensor for d in dicts for name, tensor in d.items()}
    return stateless.functional_call(module, dicts, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models):
    """Stacks the parameters and the buffers of modules of one class: ``(params, buffers)``, dicts by name.

    A parameter that needs a gradient gives a leaf that does. For use with `functional_call` under `vmap`. Raises
    RuntimeError where the modules differ in class, mode, or in which parameters need a gradient.
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(each):
        result = {}
        for name in each[0]:
            tensors = [tensors[name] for tensors in each]
            needs = {t.requires_grad for t in tensors}
            if len(needs) > 1:
                raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
            result[name] = torch.stack(tensors).detach().requires_grad_(needs.pop())
        return result

    return stacked([dict(m.named_parameters()) for m in models]), stacked([dict(m.named_buffers()) for m in models])


# ---- batches ----


def _check_randomness(randomness):
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")


def _dims_of(dims, structure, where):
    """A dimension or None for each leaf of a structure; `dims` is one for all of them, or nested as they are."""
    if structure == _LEAF or dims is None or isinstance(dims, int):
        if not (dims is None or isinstance(dims, int)):
            raise ValueError(f"{where} is not compatible with the structure of its tensors: got {dims} for a tensor")
        return [dims] * _count(structure)
    kind, keys, inner = structure
    parts = [dims.get(key) for key in keys] if isinstance(dims, dict) and keys is not None else dims
    if not isinstance(parts, (tuple, list)) or len(parts) != len(inner) or isinstance(dims, dict) != (keys is not None):
        raise ValueError(f"{where} is not compatible with the structure of its tensors, a {kind.__name__}: got {dims}")
    return [d for part, s in zip(parts, inner) for d in _dims_of(part, s, where)]


def _count(structure):
    return 1 if structure == _LEAF else sum(map(_count, structure[2]))


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """Returns a function that applies `func` to each element of a dimension of its arguments, and stacks the results.

    Args:
        func (callable): takes tensors, or nested containers of them, and returns such.
        in_dims (int, None, or nested as the arguments): the dimension to go along; None passes the argument as it is.
        out_dims (int, None, or nested as the results): where the results have that dimension. None is for a result that is
            the same for all elements.
        randomness (str): what random numbers are for the elements: "different", "same", or an "error".
        chunk_size (int, optional): accepted; elements are computed one after another.

    It calls `func` once an element, which makes it general (functions may look at values, and nest other transforms) but
    not faster than a loop. Keyword arguments are passed as they are. Raises ValueError where dimensions do not fit.
    """
    _check_randomness(randomness)
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")
    called = getattr(func, "__name__", repr(func))

    @wraps(func)
    def wrapper(*args, **kwargs):
        where = f"vmap({called}, in_dims={in_dims}, ...)(<inputs>)"
        leaves, structure = _flatten(args)
        if not leaves:
            raise ValueError(f"{where}: got no inputs to map over")
        if not isinstance(in_dims, (int, tuple)):
            raise ValueError(
                f"{where}: expected `in_dims` to be int or a tuple nested as the inputs, got {type(in_dims)}"
            )
        dims = _dims_of(in_dims, structure, f"{where}: in_dims")
        for x, d in zip(leaves, dims):
            if d is not None and not isinstance(x, torch.Tensor):
                raise ValueError(
                    f"{where}: Got in_dim={d} for an input but the input is of type {type(x)}. We cannot vmap over "
                    "non-Tensor arguments, please use None as the respective in_dim"
                )
            if d is not None and not -x.dim() <= d < x.dim():
                raise ValueError(
                    f"{where}: Got in_dim={d} for some input, but that input is a Tensor of dimensionality {x.dim()} so "
                    f"expected in_dim to satisfy -{x.dim()} <= in_dim < {x.dim()}."
                )
        sizes = [x.shape[d] for x, d in zip(leaves, dims) if d is not None]
        if not sizes:
            raise ValueError("vmap: Expected at least one Tensor to vmap over")
        if len(set(sizes)) > 1:
            raise ValueError(
                f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
                "mapped dimension"
            )
        n = sizes[0]
        state = None if randomness == "different" else torch.get_rng_state()

        def call(pick):
            if randomness == "same":
                torch.set_rng_state(state)
            picked = (x if d is None else pick(x, d) for x, d in zip(leaves, dims))
            return _flatten(func(*_unflatten(structure, picked), **kwargs))

        if n:
            results = [call(lambda x, d, i=i: x.select(d, i)) for i in range(n)]
        else:  # what an element would give tells the shapes
            results = [call(lambda x, d: x.new_zeros([s for k, s in enumerate(x.shape) if k != d % x.dim()]))]
        if randomness == "error" and not torch.equal(state, torch.get_rng_state()):
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
                "'different' randomness flags on vmap or perform the randomness operation out of vmap"
            )
        out_structure = results[0][1]
        if any(other != out_structure for _, other in results):
            raise ValueError(f"vmap({called}): the results for different elements are nested differently")
        where = f"vmap({called}, ..., out_dims={out_dims})(<inputs>): out_dims"
        columns = zip(*(outputs for outputs, _ in results))
        outputs = [
            _gather(column, d, n, called) for column, d in zip(columns, _dims_of(out_dims, out_structure, where))
        ]
        return _unflatten(out_structure, iter(outputs))

    return wrapper


def _gather(column, dim, n, called):
    """The results in one place for all elements, as one tensor."""
    for t in column:
        if not isinstance(t, torch.Tensor):
            raise ValueError(f"vmap({called}, ...): `{called}` must only return Tensors, got type {type(t)}.")
    if dim is None:
        if any(t is not column[0] for t in column):
            raise ValueError(f"vmap({called}, ...): with out_dims=None the result must be one tensor for all elements")
        return column[0]
    stacked = torch.stack(column, dim)
    return stacked if n else stacked.narrow(dim, 0, 0)
