"""Ready parametrizations of a weight: orthogonal, of given norm, of bounded spectral norm."""

from __future__ import annotations

import rushlight as torch

from .. import functional as F
from ..modules.module import Module
from .parametrize import register_parametrization
from .weight_norm import _norm_except

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _tensor(module, name):
    tensor = getattr(module, name, None)
    if not isinstance(tensor, torch.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return tensor


def _default_dim(module):
    """The output dimension of a layer's weight."""
    return 1 if getattr(module, "transposed", False) else 0


def _orthonormal(matrix):
    """The matrix with orthonormal columns nearest in the sense of QR, of positive diagonal."""
    q, r = torch.linalg.qr(matrix)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """An orthogonal matrix from any: by the exponential or Cayley map of a skew matrix, or by Householder reflections."""

    def __init__(self, weight, orthogonal_map, use_trivialization):
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x):
        wide = x.size(-2) < x.size(-1)
        x = x.mT if wide else x
        rows, columns = x.size(-2), x.size(-1)
        if self.orthogonal_map == "householder":
            vectors = x.tril(-1)
            tau = 2.0 / (1.0 + (vectors * vectors).sum(dim=-2))
            q = torch.linalg.householder_product(vectors, tau) * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            x = x.tril()
            if rows != columns:
                x = torch.cat([x, x.new_zeros(*x.shape[:-2], rows, rows - columns)], dim=-1)
            skew = x - x.mH
            if self.orthogonal_map == "matrix_exp":
                q = torch.matrix_exp(skew)
            else:
                identity = torch.eye(rows, dtype=skew.dtype, device=skew.device)
                q = torch.linalg.solve(identity - 0.5 * skew, identity + 0.5 * skew)
            q = q[..., :columns]
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    @torch.no_grad()
    def right_inverse(self, q):
        if q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {q.shape}."
            )
        start = torch.zeros_like(q)
        wide = q.size(-2) < q.size(-1)
        q = q.mT if wide else q
        rows, columns = q.size(-2), q.size(-1)
        if not hasattr(self, "base"):
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            vectors, tau = torch.geqrf(q)
            vectors.diagonal(dim1=-2, dim2=-1).sign_()
            vectors.diagonal(dim1=-2, dim2=-1)[tau == 0.0] *= -1
            return vectors.mT if wide else vectors
        if rows != columns:
            q = torch.cat([q, torch.randn(*q.shape[:-2], rows, rows - columns, dtype=q.dtype, device=q.device)], dim=-1)
        identity = torch.eye(q.size(-1), dtype=q.dtype, device=q.device)
        near = torch.allclose(q.mH @ q, identity, atol=10.0 * rows * torch.finfo(q.dtype).eps)
        self.base = q.clone() if near else _orthonormal(q)
        # The map takes minus the identity (and every diagonal matrix of the skew maps) to the base itself.
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """Keeps a matrix (or batch of them) orthogonal, or with orthonormal rows or columns; returns `module`.

    `orthogonal_map`: "matrix_exp" (default for square ones), "cayley" or "householder" (default otherwise);
    `use_trivialization`: the map starts from the matrix as it is. ValueError for another map or fewer than 2 dimensions.
    Source: Lezcano-Casado 2019, arXiv:1909.09501.
    """
    weight = _tensor(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1) or weight.is_complex()
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    return register_parametrization(module, name, _Orthogonal(weight, orthogonal_map, use_trivialization), unsafe=True)


class _WeightNorm(Module):
    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return weight_v * (weight_g / _norm_except(weight_v, self.dim))

    def right_inverse(self, weight):
        return _norm_except(weight, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """Splits a weight into its norm for each index of `dim` (None: of all of it), ``original0``, and its direction,
    ``original1``; returns `module`. Source: Salimans and Kingma 2016, arXiv:1602.07868."""
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def load_former_names(state_dict, prefix, *rest):
        former = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in former):
            for i, key in enumerate(former):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(load_former_names)
    return module


class _SpectralNorm(Module):
    """Divides by the greatest singular value, estimated by power iteration that goes on in training."""

    def __init__(self, weight, n_power_iterations, dim, eps):
        super().__init__()
        dims = weight.ndim
        if not -dims <= dim < dims:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{dims}, {dims - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % dims
        self.eps = eps
        if dims > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._as_matrix(weight.detach())
            u = matrix.new_empty(matrix.size(0)).normal_(0, 1)
            v = matrix.new_empty(matrix.size(1)).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _as_matrix(self, weight):
        return weight.movedim(self.dim, 0).flatten(1)

    @torch.no_grad()
    def _power_method(self, matrix, count):
        for _ in range(count):
            self._u.copy_(F.normalize(torch.mv(matrix, self._v), dim=0, eps=self.eps))
            self._v.copy_(F.normalize(torch.mv(matrix.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight):
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._as_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Copies, because the next forward changes the buffers before this one's backward may have run.
        u, v = self._u.clone(), self._v.clone()
        return weight / torch.vdot(u, torch.mv(matrix, v))

    def right_inverse(self, value):
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divides a weight by its greatest singular value, as a matrix whose rows are `dim` (by default the outputs).

    `n_power_iterations`: steps of its estimation in each forward of training. Returns `module`.
    Source: Miyato et al. 2018, arXiv:1802.05957.
    """
    weight = _tensor(module, name)
    dim = _default_dim(module) if dim is None else dim
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
