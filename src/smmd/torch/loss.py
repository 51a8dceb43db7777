"""SMMD² as a loss."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from smmd import measure
from smmd.kernels import Kernel, chosen
from smmd.torch.distributed import Group, check_group, resolve
from smmd.torch.layout import Layout, check_layout, to_rows
from smmd.torch.precision import at_least_single, outside_autocast


class SMMDLoss(nn.Module):
    """How far codes are from N(0, I), in null standard deviations: add λ times this to your loss.

    Zero mean and unit variance at convergence whatever the dimension, batch size and kernel width,
    so that one λ carries over between them.  It can be negative.

    Parameters
    ----------
    scale : float
        Kernel scale s, γ² = s·d.
    adaptive : bool
        γ² = s·mean‖z_i‖² instead, without gradient: for codes that are not normalized.
    kernel : Kernel, optional
        Any kernel (``MultiScale``, ``IMQ``, ``Sliced``, ...), in place of scale and adaptive.
    group : process group or "world", optional
        Take the rows of all ranks as one batch, however they are split.  The value is the same on
        each rank; gradients are scaled so that DDP's mean over ranks is the global gradient.
        "world" is all ranks, or this process alone where torch.distributed is not started.
    layout : "rows", "images" or "positions"
        "rows": (…, n, d).  "images": (n, …), each image flattened to one code.  "positions":
        (n, c, …), each position of each image a point in c dimensions.

    Calling it with ``z``, and for a random encoder with its variances ``var``, gives a 0-dim
    tensor: the mean over the leading axes' samples.  float64 codes give float64, all others
    float32; under autocast nothing is computed in half precision.

    >>> import torch, smmd.torch
    >>> z = torch.randn(128, 8, generator=torch.Generator().manual_seed(0), requires_grad=True)
    >>> loss = smmd.torch.SMMDLoss()(z)
    >>> loss.backward()
    >>> bool(loss < 3), z.grad.shape
    (True, torch.Size([128, 8]))
    """

    def __init__(
        self,
        scale: float = 1 / 8,
        *,
        adaptive: bool = False,
        kernel: Kernel | None = None,
        group: Group = None,
        layout: Layout = "rows",
    ) -> None:
        super().__init__()
        self.kernel = chosen(scale, adaptive, kernel)
        check_group(group)
        check_layout(layout)
        self.group, self.layout = group, layout
        self._simple = group is None and layout == "rows"

    def forward(self, z: Tensor, var: Tensor | None = None) -> Tensor:
        with outside_autocast(z):
            if self._simple and var is None and z.ndim == 2:  # as below, in fewer steps
                return measure.smmd(at_least_single(z), kernel=self.kernel)
            return self._loss(z, var)

    def _loss(self, z: Tensor, var: Tensor | None) -> Tensor:
        z = at_least_single(z)
        rows, _ = to_rows(z, self.layout)
        if var is not None:
            var = self._variances(var, z)
        group = resolve(self.group)
        if group is None:
            value = measure.smmd(rows, kernel=self.kernel, var=var)
        else:
            value = _of_all_ranks(rows, self.kernel, group, var)
        return value.mean() if value.ndim else value

    def _variances(self, var: Tensor, z: Tensor) -> Tensor:
        var = at_least_single(var)
        if self.layout == "rows":
            return var
        if var.shape != z.shape:
            raise ValueError(
                f"with layout={self.layout!r} var must have the shape of z, {tuple(z.shape)}; "
                f"got {tuple(var.shape)}"
            )
        return to_rows(var, self.layout, "var")[0]

    def extra_repr(self) -> str:
        parts = [repr(self.kernel)]
        parts += [f"group={self.group!r}"] if self.group is not None else []
        parts += [f"layout={self.layout!r}"] if self.layout != "rows" else []
        return ", ".join(parts)


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _of_all_ranks(rows: Tensor, kernel: Kernel, group: Group, var: Tensor | None) -> Tensor:
    from smmd import distributed

    return distributed.smmd(rows, kernel, group, var=var)
