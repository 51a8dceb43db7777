"""The kernels behind ``fused_kernels``, which says what they compute."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def bias_act(
    y, bias, rows, channels,
    BR: tl.constexpr, BC: tl.constexpr, RELU: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    there = (r < rows)[:, None] & (c < channels)[None, :]
    at = y + r[:, None] * channels + c[None, :]
    value = tl.load(at, mask=there, other=0.0).to(tl.float32)
    value += tl.load(bias + c, mask=c < channels, other=0.0).to(tl.float32)[None, :]
    if RELU:
        value = tl.maximum(value, 0.0)
    tl.store(at, value.to(y.dtype.element_ty), mask=there)


@triton.jit
def mask_and_sum(
    g, y, out, parts, rows, channels, stride,
    BR: tl.constexpr, BC: tl.constexpr, RELU: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    total = tl.zeros((BR, BC), tl.float32)
    for start in range(tl.program_id(0) * BR, rows, tl.num_programs(0) * BR):
        r = start + tl.arange(0, BR)
        there = (r < rows)[:, None] & (c < channels)[None, :]
        at = r[:, None] * channels + c[None, :]
        value = tl.load(g + at, mask=there, other=0.0)
        if RELU:
            positive = tl.load(y + at, mask=there, other=0.0).to(tl.float32) > 0.0
            value = tl.where(positive, value, 0.0)
            tl.store(out + at, value, mask=there)
        total += value.to(tl.float32)
    tl.store(parts + tl.program_id(0) * stride + c, tl.sum(total, axis=0), mask=c < channels)


@triton.jit
def add_up(
    parts, places, out, columns, number,
    BR: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    total = tl.zeros((BR, BC), tl.float32)
    for start in range(0, number, BR):
        r = start + tl.arange(0, BR)
        there = (r < number)[:, None] & (c < columns)[None, :]
        total += tl.load(parts + r[:, None] * columns + c[None, :], mask=there, other=0.0)
    place = tl.load(places + c, mask=c < columns, other=0)
    tl.store(out + place, tl.sum(total, axis=0), mask=c < columns)


@triton.jit
def adam(
    weights, gradient, first, second, narrow,
    rate, step, n,
    LOG1: tl.constexpr, LOG2: tl.constexpr, B1: tl.constexpr, B2: tl.constexpr,
    EPS: tl.constexpr, NARROW: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = at < n
    # 1 − β^t cancels for small t: in float64.
    t = tl.load(step).to(tl.float64)
    shrink1 = (1.0 - tl.exp(t * LOG1)).to(tl.float32)
    shrink2 = (1.0 - tl.exp(t * LOG2)).to(tl.float32)
    g = tl.load(gradient + at, mask=there, other=0.0)
    m = tl.load(first + at, mask=there, other=0.0)
    v = tl.load(second + at, mask=there, other=0.0)
    w = tl.load(weights + at, mask=there, other=0.0)
    m += (g - m) * (1.0 - B1)
    v = v * B2 + g * g * (1.0 - B2)
    w -= tl.load(rate) / shrink1 * m / (tl.sqrt(v / shrink2) + EPS)
    tl.store(first + at, m, mask=there)
    tl.store(second + at, v, mask=there)
    tl.store(weights + at, w, mask=there)
    if NARROW:
        tl.store(narrow + at, w.to(narrow.dtype.element_ty), mask=there)
