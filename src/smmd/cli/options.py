"""What several verbs understand alike: files, kernels by name, missing values."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from smmd.kernels import IMQ, Adaptive, Gaussian, HenzeZirkler, Kernel, MultiScale, Sliced


class KernelName(StrEnum):
    """The kernels of ``--kernel``."""

    GAUSSIAN = "gaussian"
    HENZE_ZIRKLER = "henze-zirkler"
    ADAPTIVE = "adaptive"
    MULTI_SCALE = "multi-scale"
    IMQ = "imq"
    SLICED = "sliced"


class NullName(StrEnum):
    """What is taken as unknown, and how points were normalized."""

    NORMAL = "normal"
    DIAGONAL = "diagonal"
    STANDARD = "standard"


class Method(StrEnum):
    """Where a law comes from."""

    ANALYTIC = "analytic"
    MONTE_CARLO = "monte-carlo"


class NanPolicy(StrEnum):
    """What to do with rows that have missing values."""

    RAISE = "raise"
    OMIT = "omit"


File = Annotated[
    Path | None,
    typer.Argument(help="CSV, TSV, Parquet, NPY or NPZ; without it, a shipped data set."),
]
Columns = Annotated[
    str | None, typer.Option(help="Names or indices, separated by commas; default all numeric.")
]
KernelChoice = Annotated[KernelName, typer.Option(help="Which kernel to compare with.")]
Scale = Annotated[
    str | None,
    typer.Option(
        help="Squared kernel width divided by the dimension; several, separated by commas, with "
        "--kernel multi-scale.  Default 1/8.  Fractions such as 1/16 are understood."
    ),
]
Gamma = Annotated[
    float | None,
    typer.Option(
        help="Kernel width itself, instead of --scale; for sliced the width along a direction."
    ),
]
MissingRows = Annotated[NanPolicy, typer.Option(help="Rows with missing values: refuse or omit.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def kernel_of(name: KernelName, scale: str | None, gamma: float | None) -> Kernel:
    """The kernel that the options describe; impossible combinations are named."""
    if scale is not None and gamma is not None:
        raise ValueError(f"--scale {scale} and --gamma {gamma:g} exclude each other; give one")
    scales = None if scale is None else tuple(_number(text) for text in scale.split(","))
    if scales is not None and len(scales) > 1 and name is not KernelName.MULTI_SCALE:
        raise ValueError(f"--scale {scale}: several scales need --kernel multi-scale")
    if gamma is not None and name not in (KernelName.GAUSSIAN, KernelName.IMQ, KernelName.SLICED):
        raise ValueError(f"--gamma does not apply to --kernel {name.value}; use --scale")
    if scales is not None and name in (KernelName.HENZE_ZIRKLER, KernelName.SLICED):
        remedy = "use --gamma" if name is KernelName.SLICED else "its width follows from n and d"
        raise ValueError(f"--scale does not apply to --kernel {name.value}: {remedy}")
    one = None if scales is None else scales[0]
    match name:
        case KernelName.GAUSSIAN:
            return Gaussian(one, gamma)
        case KernelName.IMQ:
            return IMQ(one, gamma)
        case KernelName.SLICED:
            return Sliced() if gamma is None else Sliced(gamma)
        case KernelName.ADAPTIVE:
            return Adaptive() if one is None else Adaptive(one)
        case KernelName.MULTI_SCALE:
            return MultiScale() if scales is None else MultiScale(scales)
        case KernelName.HENZE_ZIRKLER:
            return HenzeZirkler()


def _number(text: str) -> float:
    top, _, bottom = text.strip().partition("/")
    try:
        return float(top) / float(bottom) if bottom else float(top)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"--scale {text!r} is not a number such as 0.125 or 1/8") from None
