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


# Convolutions of few weights.  Number k of a kernel is channel k // (A B), row k // B % A, column
# k % B.


@triton.jit
def _act(value, ACT: tl.constexpr):
    if ACT == "relu":
        value = tl.maximum(value, 0.0)
    elif ACT == "sigmoid":
        value = tl.sigmoid(value)
    return value


@triton.jit
def _act_back(g, y, at, mask, ACT: tl.constexpr):
    """The gradient at ``at`` before the activation, from that behind it and the output."""
    value = tl.load(g + at, mask=mask, other=0.0).to(tl.float32)
    if ACT == "relu":
        out = tl.load(y + at, mask=mask, other=0.0).to(tl.float32)
        value = tl.where(out > 0.0, value, 0.0)
    elif ACT == "sigmoid":
        out = tl.load(y + at, mask=mask, other=0.0).to(tl.float32)
        value *= out * (1.0 - out)
    return value


@triton.jit
def few_in(
    x, weight, bias, y, points, h, w, height, width, top, left,
    xn, xc, xh, xw, wo, wc, wa, wb,
    IN: tl.constexpr, OUT: tl.constexpr, A: tl.constexpr, B: tl.constexpr,
    S: tl.constexpr, T: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr, ACT: tl.constexpr,
):  # fmt: skip
    o = tl.arange(0, BC)
    p = tl.program_id(0) * BR + tl.arange(0, BR)
    first = p // w % h * S - top
    second = p % w * T - left
    start = x + p // (h * w) * xn
    value = tl.zeros((BR, BC), tl.float32)
    value += tl.load(bias + o, mask=o < OUT, other=0.0)[None, :]
    for k in tl.static_range(IN * A * B):
        i, j = first + k // B % A, second + k % B
        inside = (p < points) & (i >= 0) & (i < height) & (j >= 0) & (j < width)
        part = tl.load(start + k // (A * B) * xc + i * xh + j * xw, mask=inside, other=0.0)
        at = o * wo + k // (A * B) * wc + k // B % A * wa + k % B * wb
        share = tl.load(weight + at, mask=o < OUT, other=0.0)
        value += part.to(tl.float32)[:, None] * share[None, :]
    there = (p < points)[:, None] & (o < OUT)[None, :]
    value = _act(value, ACT)
    tl.store(y + p[:, None] * OUT + o[None, :], value.to(y.dtype.element_ty), mask=there)


@triton.jit
def few_in_back(
    g, y, x, weight, on_x, on_weight, on_bias, weight_stride, bias_stride,
    points, h, w, height, width, top, left,
    xn, xc, xh, xw, wo, wc, wa, wb,
    IN: tl.constexpr, OUT: tl.constexpr, A: tl.constexpr, B: tl.constexpr,
    S: tl.constexpr, T: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr, BK: tl.constexpr,
    ACT: tl.constexpr, WANTED: tl.constexpr,
):  # fmt: skip
    o = tl.arange(0, BC)
    ks = tl.arange(0, BK)
    weights = tl.zeros((BK, BC), tl.float32)
    biases = tl.zeros((BR, BC), tl.float32)
    for begin in range(tl.program_id(0) * BR, points, tl.num_programs(0) * BR):
        p = begin + tl.arange(0, BR)
        first = p // w % h * S - top
        second = p % w * T - left
        there = (p < points)[:, None] & (o < OUT)[None, :]
        value = _act_back(g, y, p[:, None] * OUT + o[None, :], there, ACT)
        biases += value
        for k in tl.static_range(IN * A * B):
            i, j = first + k // B % A, second + k % B
            inside = (p < points) & (i >= 0) & (i < height) & (j >= 0) & (j < width)
            place = p // (h * w) * xn + k // (A * B) * xc + i * xh + j * xw
            part = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
            total = tl.sum(value * part[:, None], axis=0)
            weights += tl.where(ks[:, None] == k, total[None, :], 0.0)
            if WANTED:
                at = o * wo + k // (A * B) * wc + k // B % A * wa + k % B * wb
                share = tl.load(weight + at, mask=o < OUT, other=0.0)
                back = tl.sum(value * share[None, :], axis=1)
                tl.store(on_x + place, back.to(on_x.dtype.element_ty), mask=inside)
    at = ks // (A * B) * wc + ks // B % A * wa + ks % B * wb
    at = tl.program_id(0) * weight_stride + at[:, None] + o[None, :] * wo
    real = (ks < IN * A * B)[:, None] & (o < OUT)[None, :]
    tl.store(on_weight + at, weights, mask=real)
    total = tl.sum(biases, axis=0)
    tl.store(on_bias + tl.program_id(0) * bias_stride + o, total, mask=o < OUT)


@triton.jit
def few_out(
    x, weight, bias, y, points, h, w, height, width, wo, wc, wa, wb,
    IN: tl.constexpr, OUT: tl.constexpr, A: tl.constexpr, B: tl.constexpr,
    BR: tl.constexpr, BC: tl.constexpr, ACT: tl.constexpr,
):  # fmt: skip
    c = tl.arange(0, BC)
    p = tl.program_id(0) * BR + tl.arange(0, BR)
    start = (p // (h * w) * height + p // w % h) * width + p % w
    there = (p < points)[:, None] & (c < IN)[None, :]
    for o in tl.static_range(OUT):
        value = tl.zeros((BR, BC), tl.float32)
        for k in tl.static_range(A * B):
            at = start + k // B * width + k % B
            part = tl.load(x + at[:, None] * IN + c[None, :], mask=there, other=0.0)
            at = o * wo + c * wc + k // B * wa + k % B * wb
            share = tl.load(weight + at, mask=c < IN, other=0.0)
            value += part.to(tl.float32) * share[None, :]
        total = _act(tl.sum(value, axis=1) + tl.load(bias + o), ACT)
        tl.store(y + p * OUT + o, total.to(y.dtype.element_ty), mask=p < points)


@triton.jit
def few_out_back(
    g, y, x, weight, on_x, on_weight, on_bias, on_below,
    weight_stride, bias_stride, below_stride,
    points, h, w, height, width, wo, wc, wa, wb,
    IN: tl.constexpr, OUT: tl.constexpr, A: tl.constexpr, B: tl.constexpr,
    BR: tl.constexpr, BC: tl.constexpr, BK: tl.constexpr,
    ACT: tl.constexpr, WANTED: tl.constexpr, BELOW: tl.constexpr,
):  # fmt: skip
    c = tl.arange(0, BC)
    ks = tl.arange(0, BK)
    weights = tl.zeros((BK, BC), tl.float32)
    biases = tl.zeros((BK,), tl.float32)
    below = tl.zeros((BR, BC), tl.float32)
    for begin in range(tl.program_id(0) * BR, points, tl.num_programs(0) * BR):
        q = begin + tl.arange(0, BR)
        image, row, column = q // (height * width), q // width % height, q % width
        there = (q < points)[:, None] & (c < IN)[None, :]
        place = q[:, None] * IN + c[None, :]
        part = tl.load(x + place, mask=there, other=0.0).to(tl.float32)
        back = tl.zeros((BR, BC), tl.float32)
        for o in tl.static_range(OUT):
            for k in tl.static_range(A * B):
                i, j = row - k // B, column - k % B
                inside = (q < points) & (i >= 0) & (i < h) & (j >= 0) & (j < w)
                value = _act_back(g, y, ((image * h + i) * w + j) * OUT + o, inside, ACT)
                total = tl.sum(part * value[:, None], axis=0)
                weights += tl.where(ks[:, None] == o * A * B + k, total[None, :], 0.0)
                if k == 0:
                    biases += tl.where(ks == o, tl.sum(value, axis=0), 0.0)
                if WANTED:
                    at = o * wo + c * wc + k // B * wa + k % B * wb
                    share = tl.load(weight + at, mask=c < IN, other=0.0)
                    back += value[:, None] * share[None, :]
        if BELOW:
            back = tl.where(part > 0.0, back, 0.0)
            below += back
        if WANTED:
            tl.store(on_x + place, back.to(on_x.dtype.element_ty), mask=there)
    at = ks // (A * B) * wo + ks % (A * B) // B * wa + ks % B * wb
    at = tl.program_id(0) * weight_stride + at[:, None] + c[None, :] * wc
    real = (ks < OUT * A * B)[:, None] & (c < IN)[None, :]
    tl.store(on_weight + at, weights, mask=real)
    tl.store(on_bias + tl.program_id(0) * bias_stride + ks, biases, mask=ks < OUT)
    if BELOW:
        at = tl.program_id(0) * below_stride + c
        tl.store(on_below + at, tl.sum(below, axis=0), mask=c < IN)
