"""The same training step in fewer launches, for networks that are plain sequences of layers.

A step of the paper's network at 100 images is bound by its many small kernels.  Here all weights of
a model are one vector (so that Adam is one launch, and narrow copies of the weights come with it),
bias and ReLU are one launch at most, their gradients another, weight gradients are written where
Adam reads them, and convolutions of few channels, for which libraries have only slow kernels, are
kernels of their own.  The arithmetic is that of the layers; ``tests/wae/test_fused.py`` compares
them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from smmd.torch.precision import at_least_single
from smmd.wae import fused_kernels
from smmd.wae.fused_kernels import Zeros
from smmd.wae.model import Autoencoder
from smmd.wae.networks import Crop, Flat, FullLinear, Unflat

#: Layers with weights, and layers without that work on any type.
WEIGHTED = (nn.Linear, nn.Conv2d, nn.ConvTranspose2d)
PLAIN = (nn.ReLU, nn.Sigmoid, nn.ZeroPad2d, Flat, Unflat, Crop)
#: A convolution with so few inputs (or outputs) an image point has a kernel of its own, unless it
#: has very many outputs (or inputs).
FEW, WIDEST = 16, 256
#: Whether products of narrow numbers can be wide (PyTorch 2.8, GPUs).
WIDENS = "dtype_out" in torch.ops.aten.mm.overloads()
#: Weights start at multiples of so many numbers, which matrix units want.
ALIGN = 64


def fusible(network: nn.Module) -> bool:
    """Whether ``Sequence`` can stand in for it."""
    return (
        fused_kernels.HAVE_TRITON
        and type(network) is nn.Sequential
        and all(isinstance(layer, WEIGHTED + PLAIN) for layer in network)
        and all(_usual(layer) for layer in network if not isinstance(layer, PLAIN))
    )


def _usual(layer: Any) -> bool:
    if layer.bias is None:
        return False
    if isinstance(layer, nn.Linear):
        return True
    return (
        layer.groups == 1
        and layer.padding_mode == "zeros"
        and set(layer.dilation) == {1}
        and not isinstance(layer.padding, str)
    )


#: What a layer's forward pass keeps for the backward one.
Kept = Any


class FlatAdam:
    """Adam on a model whose parameters become views of one vector.

    Has of ``torch.optim.Adam`` what ``loop.Learner`` asks for: state by parameter, the learning
    rate in ``param_groups``, ``zero_grad`` and ``step``.
    """

    def __init__(self, model: nn.Module, narrow: torch.dtype | None, epsilon: float) -> None:
        parameters = [p for p in model.parameters() if p.requires_grad]
        sizes = [-(-p.numel() // ALIGN) * ALIGN for p in parameters]
        device, total = parameters[0].device, sum(sizes)
        self.epsilon = epsilon
        dtype = parameters[0].dtype
        self.weights, self.gradient, self.first, self.second = (
            torch.zeros(total, dtype=dtype, device=device) for _ in range(4)
        )
        self.narrow = None
        if narrow is not None:
            self.narrow = torch.zeros(total, dtype=narrow, device=device)
        rate = torch.tensor(1e-3, dtype=torch.float32, device=device)
        self.param_groups: list[dict[str, Any]] = [{"lr": rate}]
        self.count = torch.zeros((), dtype=torch.float32, device=device)
        self.state: dict[Tensor, dict[str, Tensor]] = {}
        self.copies: dict[Tensor, Tensor] = {}
        self.loose = list(parameters)
        self.in_parts: dict[Tensor, Tensor] = {}
        self.received: list[tuple[Tensor, Tensor]] = []
        start = 0
        for parameter, size in zip(parameters, sizes, strict=True):
            place = (parameter.shape, _strides(parameter), start)
            view = self.weights.as_strided(*place)
            view.copy_(parameter.detach())
            parameter.data = view
            parameter.grad = self.gradient.as_strided(*place)
            self.state[parameter] = {
                "step": self.count,
                "exp_avg": self.first.as_strided(*place),
                "exp_avg_sq": self.second.as_strided(*place),
            }
            narrowed = self.weights if self.narrow is None else self.narrow
            self.copies[parameter] = narrowed.as_strided(*place)
            start += size
        self.refresh()

    def refresh(self) -> None:
        """After weights were written by somebody else."""
        if self.narrow is not None:
            self.narrow.copy_(self.weights)

    def adopt(self, layers: list[_Layer]) -> None:
        """Layers that write their gradients anew in each step; autograd adds up the rest."""
        taken = {p for layer in layers for p in layer.layer.parameters()}
        self.loose = [p for p in self.loose if p not in taken]
        in_parts = [p for layer in layers for p in layer.in_parts]
        columns, start = sum(p.numel() for p in in_parts), 0
        self.sums = self.gradient.new_zeros(fused_kernels.PARTS, columns)
        self.places = torch.zeros(columns, dtype=torch.long, device=self.sums.device)
        for parameter in in_parts:
            grad = _grad(parameter)
            stop = start + grad.numel()
            torch.arange(stop - start, out=self.places[start:stop]).add_(grad.storage_offset())
            shape, strides = (len(self.sums), *grad.shape), (columns, *grad.stride())
            self.in_parts[parameter] = self.sums.as_strided(shape, strides, start)
            start = stop

    def parts(self, parameter: nn.Parameter) -> Tensor:
        """Where to write what adds up to a gradient: (parts, ...)."""
        found = self.in_parts.get(parameter)
        return _grad(parameter)[None] if found is None else found

    def receive(self, parameter: nn.Parameter, gradient: Tensor) -> None:
        """A gradient, to be put into its place together with all others."""
        self.received.append((_grad(parameter), gradient))

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Only what autograd adds to."""
        for parameter in self.loose:
            _grad(parameter).zero_()

    @torch.no_grad()
    def step(self) -> None:
        """One launch, a count, and what is left to do for the gradients."""
        if self.received:
            places, gradients = zip(*self.received, strict=True)
            torch._foreach_copy_(places, gradients)
            self.received.clear()
        if self.in_parts:
            fused_kernels.add_up(self.sums, self.places, self.gradient)
        self.count += 1
        fused_kernels.adam_(
            self.weights,
            self.gradient,
            (self.first, self.second),
            self.narrow,
            self.param_groups[0]["lr"],
            self.count,
            self.epsilon,
        )


def _grad(parameter: nn.Parameter) -> Tensor:
    assert parameter.grad is not None
    return parameter.grad


def _strides(parameter: Tensor) -> tuple[int, ...]:
    """Convolutions' weights with channels last, others as they are read."""
    if parameter.ndim != 4:
        return tuple(torch.empty(parameter.shape, device="meta").stride())
    meta = torch.empty(parameter.shape, device="meta", memory_format=torch.channels_last)
    return tuple(meta.stride())


def fuse(model: Autoencoder, epsilon: float) -> FlatAdam:
    """Make a model train by fused layers, where they are fusible, and by flat Adam."""
    adam = FlatAdam(model, model.narrow, epsilon)
    layers: list[_Layer] = []
    for name in ("encoder", "decoder"):
        network = getattr(model, name)
        if fusible(network):
            sequence = Sequence(network, adam, first=name == "encoder")
            layers += [step for step in sequence.steps if isinstance(step, _Layer)]
            model.fast[name] = sequence
    adam.adopt(layers)
    return adam


class Sequence:
    """A sequence of layers, applied; ``first`` says that its input needs no gradient."""

    def __init__(self, network: nn.Sequential, adam: FlatAdam, first: bool) -> None:
        self.steps: list[Callable[[Tensor], Tensor]] = []
        layers: list[Any] = list(network)
        while layers:
            layer, zeros = layers.pop(0), Zeros(0, 0, 0, 0)
            if isinstance(layer, nn.ZeroPad2d) and layers and _few(layers[0], first) == "in":
                layer, zeros = layers.pop(0), Zeros(*layer.padding)
            if not isinstance(layer, WEIGHTED):
                self.steps.append(_full(layer) if isinstance(layer, nn.Sigmoid) else layer)
                continue
            few = _few(layer, first)
            first = False
            act = _activation(layers, (nn.ReLU, nn.Sigmoid) if few else (nn.ReLU,))
            if few:
                last: Any = self.steps[-1] if self.steps else None
                behind_relu = isinstance(last, _Convolution) and last.act == "relu"
                below = last if few == "out" and behind_relu else None
                self.steps.append(_Few(layer, adam, act, few, zeros, below))
            else:
                kind = _Dense if isinstance(layer, nn.Linear) else _Convolution
                self.steps.append(kind(layer, adam, act))

    def __call__(self, x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, enabled=False):
            for step in self.steps:
                x = step(x)
        return x


def _activation(layers: list[Any], known: tuple[type, ...]) -> str:
    """Take from what follows a layer the activation that it does itself."""
    if not layers or not isinstance(layers[0], known):
        return ""
    return "relu" if isinstance(layers.pop(0), nn.ReLU) else "sigmoid"


def _full(layer: nn.Module) -> Callable[[Tensor], Tensor]:
    """In float32: the images' errors are taken from it."""
    return lambda x: layer(at_least_single(x))


class _Layer:
    """act(product(x) + bias), and its gradients; the parameters' are written where they belong."""

    def __init__(self, layer: Any, adam: FlatAdam, act: str) -> None:
        self.layer, self.adam, self.act = layer, adam, act
        #: Whether what comes from above is the gradient before the activation already.
        self.masked_above = False
        full = isinstance(layer, FullLinear)
        self.weight, self.bias = (
            (p.detach() if full else adam.copies[p]) for p in (layer.weight, layer.bias)
        )
        # Sums over a batch's rows are short, those over its images' points are shared out.
        self.in_parts = [] if isinstance(layer, nn.Linear) else [layer.bias]

    def __call__(self, x: Tensor) -> Tensor:
        # The bias is an argument so that a gradient is asked for even where x needs none.
        y: Tensor = _Apply.apply(x, self.layer.bias, self)  # type: ignore[no-untyped-call]
        return y

    def forward(self, x: Tensor) -> tuple[Tensor, Kept]:
        """The output, and what ``backward`` needs besides it."""
        raise NotImplementedError

    def backward(self, g: Tensor, y: Tensor, kept: Kept, wanted: bool) -> Tensor | None:
        """The gradient in x, if it is wanted."""
        raise NotImplementedError

    def masked(self, g: Tensor, y: Tensor) -> Tensor:
        """The gradient before the activation; the bias's is done."""
        if self.masked_above:
            return g
        rows = _rows(y) if self.act else None
        masked = fused_kernels.mask_and_sum(_rows(g), rows, self.adam.parts(self.layer.bias))
        return masked.reshape(_last_shape(g)).movedim(-1, 1) if g.ndim == 4 else masked


class _Apply(torch.autograd.Function):
    """A layer for autograd."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor, layer: _Layer) -> Tensor:
        ctx.layer, ctx.dtype = layer, x.dtype
        ctx.y, ctx.kept = layer.forward(x)
        return ctx.y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        wanted = ctx.needs_input_grad[0]
        on_x = ctx.layer.backward(_last(grads[0]), ctx.y, ctx.kept, wanted)
        ctx.y = ctx.kept = None
        return (on_x.to(ctx.dtype) if wanted else None), None, None


def _last(x: Tensor) -> Tensor:
    """Stored with channels last."""
    if x.ndim == 4:
        return x.contiguous(memory_format=torch.channels_last)
    return x.contiguous()


def _last_shape(x: Tensor) -> tuple[int, ...]:
    return (x.shape[0], *x.shape[2:], x.shape[1])


def _rows(x: Tensor) -> Tensor:
    """(points, channels), without a copy if channels are last."""
    return x.movedim(1, -1).reshape(-1, x.shape[1]) if x.ndim == 4 else x


class _Dense(_Layer):
    """Bias and ReLU belong to the library's product."""

    def forward(self, x: Tensor) -> tuple[Tensor, Kept]:
        x = x.to(self.weight.dtype)
        product = torch._addmm_activation if self.act else torch.addmm
        return product(self.bias, x, self.weight.T), x

    def backward(self, g: Tensor, y: Tensor, x: Kept, wanted: bool) -> Tensor | None:
        g = self.masked(g, y)
        place = _grad(self.layer.weight)
        if place.dtype == g.dtype:
            torch.mm(g.T, x, out=place)
        elif WIDENS and g.is_cuda:
            torch.ops.aten.mm.dtype_out(g.T, x, place.dtype, out=place)
        else:
            self.adam.receive(self.layer.weight, g.T @ x)
        return g @ self.weight if wanted else None


class _Convolution(_Layer):
    """Whatever the library has for it."""

    def __init__(self, layer: Any, adam: FlatAdam, act: str) -> None:
        super().__init__(layer, adam, act)
        transposed = isinstance(layer, nn.ConvTranspose2d)
        extra = layer.output_padding if transposed else (0, 0)
        self.options = (layer.stride, layer.padding, layer.dilation, transposed, extra, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Kept]:
        x = _last(x.to(self.weight.dtype))
        y = _last(torch.ops.aten.convolution(x, self.weight, None, *self.options))
        fused_kernels.bias_act_(_rows(y), self.layer.bias, self.act == "relu")
        return y, x

    def backward(self, g: Tensor, y: Tensor, x: Kept, wanted: bool) -> Tensor | None:
        on_x, on_weight, _ = torch.ops.aten.convolution_backward(
            self.masked(g, y), x, self.weight, None, *self.options, [wanted, True, False]
        )
        self.adam.receive(self.layer.weight, on_weight)
        return on_x


class _Few(_Layer):
    """A convolution of few weights: one launch, and one for its gradients.

    The latter is that of the ReLU of the layer ``below``, too, if its input comes from one.
    """

    def __init__(
        self, layer: Any, adam: FlatAdam, act: str, few: str, zeros: Zeros, below: _Layer | None
    ) -> None:
        super().__init__(layer, adam, act)
        self.in_parts = [layer.weight, layer.bias]
        self.below = below
        if below is not None:
            below.masked_above = True
        high, wide = layer.padding
        left, right, top, bottom = zeros
        zeros = Zeros(left + wide, right + wide, top + high, bottom + high)
        self.how = fused_kernels.Convolution(few, layer.stride, zeros, act)

    def forward(self, x: Tensor) -> tuple[Tensor, Kept]:
        x = _last(x)
        weight, bias = self.layer.weight, self.layer.bias
        # Behind a sigmoid in full: the images' errors are taken from it.
        dtype = weight.dtype if self.act == "sigmoid" else self.weight.dtype
        return fused_kernels.convolve(x, weight, bias, self.how, dtype), x

    def backward(self, g: Tensor, y: Tensor, x: Kept, wanted: bool) -> Tensor | None:
        weight, bias = self.layer.weight, self.layer.bias
        below = None if self.below is None else self.adam.parts(self.below.layer.bias)
        parts = self.adam.parts(weight), self.adam.parts(bias), below
        return fused_kernels.convolve_back(g, y, x, weight, self.how, *parts, wanted)


def _few(layer: nn.Module, first: bool) -> str:
    """What this layer has few of, if ``_Few`` is made for it; a first one's x needs no gradient."""
    if not isinstance(layer, nn.Conv2d):
        return ""
    area, apart = layer.kernel_size[0] * layer.kernel_size[1], layer.stride == layer.kernel_size
    if layer.in_channels * area <= FEW and layer.out_channels <= WIDEST and (apart or first):
        return "in"
    plain = (*layer.stride, *layer.padding) == (1, 1, 0, 0)
    if layer.out_channels * area <= FEW and layer.in_channels <= WIDEST and plain:
        return "out"
    return ""
