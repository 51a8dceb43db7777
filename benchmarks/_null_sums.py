"""All pair sums of `_null_values` in one pass on a GPU, in float64, nothing n×n stored."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

#: Room for the sums of one program: (1 + powers) widths and the rational one, for two stretches.
SLOTS = 32
_BLOCK = 32


@triton.jit
def _sums(
    z, out, constants, n, tiles,
    D: tl.constexpr, BLOCK: tl.constexpr, POWERS: tl.constexpr, SLOTS: tl.constexpr,
    IMQ: tl.constexpr, STRETCHED: tl.constexpr,
):  # fmt: skip
    """Rows of one block against all rows from there on; halves of the matrix count twice."""
    # as an array: Triton takes Python floats as float32
    wide = tl.load(constants)
    hz = tl.load(constants + 1)
    imq = tl.load(constants + 2)
    stretch = tl.load(constants + 3)
    sample = tl.program_id(0).to(tl.int64)
    tile = tl.program_id(1)
    z += sample * n * D
    i = tile * BLOCK + tl.arange(0, BLOCK)
    slot = tl.arange(0, SLOTS)
    total = tl.zeros([SLOTS], tl.float64)
    for other in range(tile, tiles):
        j = other * BLOCK + tl.arange(0, BLOCK)
        r2 = tl.zeros([BLOCK, BLOCK], tl.float64)
        for k in range(D):
            x = tl.load(z + i * D + k, mask=i < n, other=0.0)
            y = tl.load(z + j * D + k, mask=j < n, other=0.0)
            difference = x[:, None] - y[None, :]
            r2 += difference * difference
        counted = (i[:, None] != j[None, :]) & (i[:, None] < n) & (j[None, :] < n)
        times = tl.where(counted, tl.where(other > tile, 2.0, 1.0), 0.0).to(tl.float64)
        for turn in tl.static_range(0, 2 if STRETCHED else 1):
            here = r2 * stretch if turn else r2
            first = turn * (SLOTS // 2)
            value = tl.sum(tl.sum(times * tl.exp(-hz * here), 1), 0)
            total += tl.where(slot == first, value, 0.0)
            if IMQ and turn == 0:
                value = tl.sum(tl.sum(times / (1.0 + imq * here), 1), 0)
                total += tl.where(slot == first + POWERS + 1, value, 0.0)
            power = tl.exp(-wide * here)
            for p in tl.static_range(POWERS):
                if p > 0:
                    power = power * power
                value = tl.sum(tl.sum(times * power, 1), 0)
                total += tl.where(slot == first + 1 + p, value, 0.0)
    tl.store(out + (sample * tiles + tile) * SLOTS + slot, total)


def pair_sums(
    z: torch.Tensor, wide: float, hz: float, imq: float, powers: int, stretch: float
) -> torch.Tensor:
    """(samples, SLOTS): HZ, the powers and IMQ of r²; from SLOTS/2 on of stretch·r²."""
    samples, n, d = z.shape
    tiles = triton.cdiv(n, _BLOCK)
    out = torch.empty((samples, tiles, SLOTS), dtype=torch.float64, device=z.device)
    constants = torch.tensor([wide, hz, imq, stretch], dtype=torch.float64, device=z.device)
    _sums[(samples, tiles)](
        z.contiguous(), out, constants, n, tiles,
        D=d, BLOCK=_BLOCK, POWERS=powers, SLOTS=SLOTS, IMQ=True, STRETCHED=stretch != 1.0,
        num_warps=4,
    )  # fmt: skip
    return out.sum(dim=1)
