"""The fused step's Triton kernels against what they stand for; run by ``test_fused``."""

import functools

import torch

from smmd.pairs import plan
from smmd.wae import fused_kernels as kernels
from smmd.wae import model
from smmd.wae.config import choose
from smmd.wae.loop import Learner


def both(function):
    """What ``function`` gives with kernels and without."""
    answers = []
    for triton in (False, True):
        kernels.ALWAYS_TRITON = triton
        answers.append(function(torch.Generator().manual_seed(0)))
    return answers


def close(function, **tolerance):
    for plain, fast in zip(*both(function), strict=True):
        torch.testing.assert_close(fast, plain, **tolerance)


def bias(rows, channels, relu, dtype):
    def run(generator):
        y = torch.randn(rows, channels, generator=generator).to(dtype)
        kernels.bias_act_(y, torch.randn(channels, generator=generator), relu)
        return [y]

    return run


def mask(rows, channels, relu, dtype, parts):
    def run(generator):
        g = torch.randn(rows, channels, generator=generator).to(dtype)
        y = torch.randn(rows, channels, generator=generator).to(dtype) if relu else None
        # Some columns of a wider table, whose others stay as they are.
        table = torch.full((parts, channels + 2), 7.0)
        masked = kernels.mask_and_sum(g, y, table[:, 1:-1])
        total = torch.full((channels + 9,), 7.0)
        kernels.add_up(table, torch.arange(channels + 2).flip(0) + 3, total)
        return [masked, total, table[:, [0, -1]]]

    return run


def convolution(images, weight, how, wanted=True, below=False, dtype=torch.float32):
    """Output, gradients, and parts' sums, with channels last."""

    def last(*shape, generator):
        return torch.randn(shape, generator=generator).contiguous(memory_format=torch.channels_last)

    def run(generator):
        x, kernel = (last(*shape, generator=generator) for shape in (images, weight))
        x, shift = x.to(dtype), torch.randn(len(kernel), generator=generator)
        y = kernels.convolve(x, kernel, shift, how, dtype)
        g = last(*y.shape, generator=generator).to(dtype)
        on_weight = torch.full((5, kernel.numel()), 7.0)
        on_weight = on_weight.as_strided((5, *weight), (kernel.numel(), *kernel.stride()))
        on_bias, on_below = (torch.full((5, size), 7.0) for size in weight[:2])
        on_x = kernels.convolve_back(
            g, y, x, kernel, how, on_weight, on_bias, on_below if below else None, wanted
        )
        sums = [parts.sum(0) for parts in (on_weight, on_bias, on_below)]
        return [y, *sums, *([on_x] if wanted else [])]

    return run


def adam(n, narrow):
    def run(generator):
        weights, first = (torch.randn(n, generator=generator) for _ in range(2))
        second = torch.rand(n, generator=generator)
        copy = torch.zeros(n, dtype=torch.bfloat16) if narrow else None
        step = torch.tensor(0.0)
        for _ in range(3):
            step += 1
            gradient = torch.randn(n, generator=generator)
            rate = torch.tensor(1e-3)
            kernels.adam_(weights, gradient, (first, second), copy, rate, step, 1e-7)
        return [weights, first, second, *([copy] if narrow else [])]

    return run


for shape in ((1, 1), (700, 1), (9000, 3), (300, 64), (100, 130)):
    for relu in (True, False):
        close(bias(*shape, relu, torch.float32), rtol=1e-6, atol=1e-6)
        # In bfloat16 PyTorch rounds before the ReLU as the kernel does after it: the same bits.
        close(bias(*shape, relu, torch.bfloat16), rtol=2**-7, atol=2**-8)
        for dtype in (torch.float32, torch.bfloat16):
            for parts in (1, 70):
                close(mask(*shape, relu, dtype, parts), rtol=1e-5, atol=1e-4)
NONE = kernels.Zeros(0, 0, 0, 0)
some = kernels.Zeros(2, 1, 0, 3)
few_in, few_out = (functools.partial(kernels.Convolution, few) for few in ("in", "out"))
for given in (
    ((3, 1, 8, 6), (1, 1, 2, 2), few_in((1, 1), kernels.Zeros(0, 1, 0, 1), "relu"), False),
    ((20, 1, 8, 8), (64, 1, 2, 2), few_in((2, 2), NONE, "relu")),
    ((2, 3, 9, 7), (5, 3, 2, 2), few_in((2, 2), NONE, "")),
    ((2, 2, 7, 7), (70, 2, 3, 2), few_in((2, 1), some, "sigmoid"), False),
    ((20, 64, 9, 9), (1, 64, 2, 2), few_out((1, 1), NONE, "sigmoid"), True, True),
    ((2, 70, 9, 7), (3, 70, 1, 3), few_out((1, 1), NONE, "relu")),
    ((2, 3, 5, 6), (2, 3, 3, 2), few_out((1, 1), NONE, ""), False),
):
    close(convolution(*given), rtol=1e-5, atol=1e-4)
for given in (
    ((2, 3, 8, 8), (5, 3, 2, 2), few_in((2, 2), NONE, "relu"), True, False, torch.bfloat16),
    ((2, 64, 9, 9), (3, 64, 2, 2), few_out((1, 1), NONE, ""), True, True, torch.bfloat16),
):
    close(convolution(*given), rtol=2**-7, atol=1e-3)
for n in (1, 1024, 5000):
    close(adam(n, False), rtol=1e-5, atol=1e-6)
    close(adam(n, True), rtol=2**-7, atol=1e-5)


def whole_step(generator):
    """Losses and gradients of a step in which everything is a kernel that can be one."""
    config = choose("paper", batch=10, latent=3)
    images = (torch.rand(10, 1, 8, 8, generator=generator) * 255).byte()
    one = Learner(config, model.build(config, (1, 8, 8)), images, fused=kernels.ALWAYS_TRITON)
    one.begin(1)
    with plan.use("triton" if kernels.ALWAYS_TRITON else "dense"):
        one.step()
    gradients = {name: p.grad for name, p in one.model.named_parameters()}
    # The codes' mean is taken away, so that this gradient is 0 but for rounding.
    last = [name for name in gradients if name.startswith("encoder")][-1]
    assert float(gradients.pop(last).abs().max()) < 1e-6
    return [one.measured, *(g / g.abs().max() for g in gradients.values())]


close(whole_step, rtol=1e-4, atol=5e-5)
