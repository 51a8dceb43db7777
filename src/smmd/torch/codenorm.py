"""Code normalization (paper, section 3.2 and appendix A.2) as layers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from smmd.samples import moments, pooled_moments
from smmd.torch.distributed import Group, check_group, gather, resolve
from smmd.torch.layout import Layout, check_layout, to_rows
from smmd.torch.precision import at_least_single, is_recomputed, outside_autocast
from smmd.torch.standardizing import serves, standardized


class _RunningNorm(nn.Module):
    """Batch statistics in training, running population statistics in evaluation.

    The buffers are named as in ``BatchNorm1d``.
    """

    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor
    _least = 2  # rows that have a variance

    def __init__(
        self,
        d: int,
        *,
        momentum: float | None = 0.1,
        eps: float = 1e-10,
        group: Group = None,
        layout: Layout = "rows",
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if isinstance(d, bool) or int(d) != d or d < 1:
            raise ValueError(f"d must be a whole number >= 1, the codes' dimension; got {d!r}")
        if momentum is not None and not 0.0 < momentum <= 1.0:
            raise ValueError(
                f"momentum must be in (0, 1], or None for a cumulative mean; got {momentum!r}"
            )
        if not eps > 0.0:
            raise ValueError(f"eps must be positive, got {eps!r}")
        check_group(group)
        check_layout(layout)
        self.d, self.momentum, self.eps = int(d), momentum, float(eps)
        self.group, self.layout = group, layout
        self.register_buffer("running_mean", torch.zeros(self.d, device=device, dtype=dtype))
        self.register_buffer("running_var", torch.ones(self.d, device=device, dtype=dtype))
        counter = torch.zeros((), dtype=torch.long, device=device)
        self.register_buffer("num_batches_tracked", counter)

    def reset_running_stats(self) -> None:
        """Back to mean 0 and variance 1."""
        self.running_mean.zero_()
        self.running_var.fill_(1.0)
        self.num_batches_tracked.zero_()

    def extra_repr(self) -> str:
        text = f"{self.d}, momentum={self.momentum}, eps={self.eps:g}"
        text += f", group={self.group!r}" if self.group is not None else ""
        return text + (f", layout={self.layout!r}" if self.layout != "rows" else "")

    def _standardize(self, rows: Tensor, var: Tensor | None) -> tuple[Tensor, Tensor]:
        """The centred rows divided by the standard deviation, and the variance (…, 1, d)."""
        self._check(rows)
        if not self.training:
            spread = self.running_var.to(rows.dtype).clamp_min(self.eps)
            return (rows - self.running_mean.to(rows.dtype)) * spread.rsqrt(), spread
        mean, centred, variance = self._batch(rows, var)
        self.track(mean, variance)
        spread = variance.clamp_min(self.eps)
        return centred * spread.rsqrt(), spread

    def _check(self, rows: Tensor) -> None:
        if rows.ndim < 2 or rows.shape[-1] != self.d:
            raise ValueError(
                f"codes must have shape (..., n, {self.d}) after layout={self.layout!r}, "
                f"got {tuple(rows.shape)}"
            )
        if not rows.is_floating_point():
            raise TypeError(f"codes must be floating-point numbers, got {rows.dtype}")
        if self.training and rows.shape[-2] < self._least and resolve(self.group) is None:
            raise ValueError(
                f"codes have n={rows.shape[-2]} rows, but in training the batch's own variance "
                f"needs at least {self._least}: pass more rows, or call .eval() to use the running "
                "statistics"
            )

    def _batch(self, rows: Tensor, var: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        group, n = resolve(self.group), rows.shape[-2]
        lost = 1 if var is None else 0  # n − 1 for points, n for the mixture
        mean, centred, squares = moments(rows, var)
        if group is None:
            return mean, centred, squares / (n - lost)
        # Counts travel with the statistics: ranks may hold different numbers of rows, or none.
        count = torch.full_like(mean, n)
        parts = gather(torch.cat([count, mean, squares], dim=-2), group)
        counts, means, spreads = parts.split(1, dim=-2)
        many, common, together = pooled_moments(counts, means, spreads)
        return common, centred + (mean - common), together / (many - lost).clamp_min(1.0)

    def tracks(self) -> bool:
        """Whether a batch counts: not if checkpointing runs it again, it was counted then."""
        return not is_recomputed()

    @torch.no_grad()
    def track(self, mean: Tensor, variance: Tensor) -> None:
        """Take a batch's mean and variance (…, 1, d) into the running statistics."""
        if not self.tracks():
            return
        self.num_batches_tracked += 1
        # Samples along leading axes count as one batch: their statistics are averaged.
        if mean.ndim > 2:
            mean, variance = (v.reshape(-1, self.d).mean(0) for v in (mean, variance))
        mean, variance = mean.view(self.d), variance.view(self.d)
        # A plain number stays one: as a tensor it would be copied from the host at every batch.
        step: Any = self.momentum
        if step is None:
            step = 1.0 / self.num_batches_tracked.to(self.running_mean.dtype)
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), step)
        self.running_var.lerp_(variance.to(self.running_var.dtype), step)


class CodeNorm(_RunningNorm):
    """Zero mean and unit variance of each code dimension: batch normalization as the paper has it.

    In training by the batch's mean and n−1 standard deviation, in evaluation by their running
    averages; there is no affine part.  Because a training batch is normalized by its own
    statistics, its SMMD² lies below that of a validation batch: see ``LatentMonitor``.

    Parameters
    ----------
    d : int
        The dimension of the codes.
    momentum : float or None
        The weight of a new batch in the running statistics, as in ``BatchNorm1d``; None averages
        over all batches.
    eps : float
        The smallest variance divided by.  It is a floor and not added: codes whose variance exceeds
        it are normalized to a variance of exactly one.
    group : process group or "world", optional
        Statistics of the rows of all ranks, however many each holds.
    layout : "rows", "images" or "positions"
        As in ``SMMDLoss``.  With "rows" and leading axes each sample is normalized by itself.

    >>> import torch, smmd.torch
    >>> z = smmd.torch.CodeNorm(2)(torch.tensor([[1.0, 10.0], [2.0, 30.0], [3.0, 50.0]]))
    >>> z[:, 0].tolist()
    [-1.0, 0.0, 1.0]
    """

    def forward(self, z: Tensor) -> Tensor:
        with outside_autocast(z):
            rows, restore = to_rows(at_least_single(z), self.layout)
            return restore(self._points(rows)).to(z.dtype)

    def _points(self, rows: Tensor) -> Tensor:
        alone = self.training and resolve(self.group) is None
        if not (alone and serves(rows)):
            return self._standardize(rows, None)[0]
        self._check(rows)
        return standardized(rows, self)

    @classmethod
    def from_batch_norm(
        cls, norm: nn.BatchNorm1d, *, drop_affine: bool = False, **options: Any
    ) -> CodeNorm:
        """The layer that gives in evaluation what ``norm`` gives, without its affine part.

        Its ``eps`` is added to the running variance, which is n−1 in both.  In training the two
        differ by √((n−1)/n): ``BatchNorm1d`` divides by the biased standard deviation.
        """
        if norm.affine and not drop_affine:
            trivial = bool((norm.weight == 1).all()) and bool((norm.bias == 0).all())
            if not trivial:
                raise ValueError(
                    "norm has a learned weight and bias, which CodeNorm has not: fold them into "
                    "the next layer, or pass drop_affine=True to lose them"
                )
        if norm.running_mean is None or norm.running_var is None:
            raise ValueError("norm has track_running_stats=False, so there is nothing to convert")
        options.setdefault("momentum", norm.momentum)
        layer = cls(norm.num_features, **options)
        layer = layer.to(device=norm.running_mean.device, dtype=norm.running_mean.dtype)
        layer.running_mean.copy_(norm.running_mean)
        layer.running_var.copy_(norm.running_var + norm.eps)
        if norm.num_batches_tracked is not None:
            layer.num_batches_tracked.copy_(norm.num_batches_tracked)
        return layer.train(norm.training)

    def to_batch_norm(self) -> nn.BatchNorm1d:
        """The ``BatchNorm1d`` without affine part that gives the same in evaluation."""
        if self.layout != "rows":
            raise ValueError(f"BatchNorm1d takes rows, but this layer has layout={self.layout!r}")
        norm = nn.BatchNorm1d(self.d, eps=self.eps, momentum=self.momentum, affine=False)
        norm = norm.to(device=self.running_mean.device, dtype=self.running_mean.dtype)
        assert norm.running_mean is not None
        assert norm.running_var is not None
        assert norm.num_batches_tracked is not None
        norm.running_mean.copy_(self.running_mean)
        norm.running_var.copy_(self.running_var.clamp_min(self.eps) - self.eps)
        norm.num_batches_tracked.copy_(self.num_batches_tracked)
        return norm.train(self.training)

    @torch.no_grad()
    def folded_into(self, linear: nn.Linear) -> nn.Linear:
        """A linear layer that gives in evaluation what ``linear`` and then this layer give."""
        if linear.out_features != self.d:
            raise ValueError(
                f"linear gives {linear.out_features} features, but this layer takes {self.d}"
            )
        like = linear.weight
        folded = nn.Linear(linear.in_features, self.d, device=like.device, dtype=like.dtype)
        scale = self.running_var.to(like.dtype).clamp_min(self.eps).rsqrt()
        bias = 0.0 if linear.bias is None else linear.bias
        folded.weight.copy_(like * scale[:, None])
        folded.bias.copy_((bias - self.running_mean.to(like.dtype)) * scale)
        return folded


class GaussianCodeNorm(_RunningNorm):
    """Code normalization of a random encoder's means and variances: (mu, var) → (mu, var).

    The batch is a mixture of the Gaussians N(mu_i, diag var_i); its mean and variance,
    mean(mu² + σ²) − mean(mu)², are known in closed form (paper, appendix A.2).  mu is centred and
    divided by the standard deviation, var by the variance.  ``var`` has the shape of ``mu``.

    Parameters are those of ``CodeNorm``.
    """

    _least = 1

    def forward(self, mu: Tensor, var: Tensor) -> tuple[Tensor, Tensor]:
        if mu.shape != var.shape:
            raise ValueError(
                f"var must have the shape of mu, {tuple(mu.shape)}; got {tuple(var.shape)}"
            )
        with outside_autocast(mu):
            means, restore = to_rows(at_least_single(mu), self.layout, "mu")
            variances, _ = to_rows(at_least_single(var), self.layout, "var")
            normalized, spread = self._standardize(means, variances)
            return restore(normalized).to(mu.dtype), restore(variances / spread).to(var.dtype)
