"""Launching the kernels: memory, grids and arguments."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from smmd.pairs.triton_cross import finish
from smmd.pairs.triton_direct import direct
from smmd.pairs.triton_math import COLUMNS, GAUSSIAN, MIXTURE, PROFILE, mixture_table
from smmd.pairs.triton_plan import (
    MOST_DIFFERENCES,
    NO_CROSS,
    Cross,
    Kernel,
    Parts,
    from_special_unit,
    power_of_two,
)

KINDS = {"gaussian": GAUSSIAN.value, "mixture": MIXTURE.value, "profile": PROFILE.value}

#: Whether kernels run on the CPU, in Triton's interpreter.
INTERPRETED = os.environ.get("TRITON_INTERPRET", "0") not in ("", "0")

_compiled: dict[tuple[Any, ...], Any] = {}


def launch(
    kernel: Any,
    programs: int,
    traits: tuple[Any, ...],
    arguments: tuple[Any, ...],
    **constants: Any,
) -> None:
    """``kernel[(programs,)](*arguments, **constants)``, fast from the second time on.

    Triton looks at every argument of every launch anew, which takes longer than small samples do.
    What it would find is known from ``traits`` (the caller's types, alignments and numbers of
    terms; all else the caller made itself) and the constants: if these were met before, the
    compiled kernel is called at once.
    """
    key = (kernel.__name__, traits, *constants.values())
    ready = _compiled.get(key)
    if ready is not None:
        ready[(programs, 1, 1)](*arguments, *list(constants.values())[:-_OPTIONS])
        return
    made = first(kernel, programs, arguments, constants)
    if not INTERPRETED:
        _compiled[key] = made


def first(
    kernel: Any, programs: int, arguments: tuple[Any, ...], constants: dict[str, Any]
) -> Any:
    """Compile and launch; the compiled kernel."""
    return kernel[(programs,)](*arguments, **constants)


#: ``num_warps`` and ``num_stages`` come last among the constants.
_OPTIONS = 2


def traits_of(x: Tensor, kernel: Kernel | None = None) -> tuple[Any, ...]:
    """What a compiled kernel depends on: device, type and alignment of data, sizes of tables."""
    found = (x.device.index, x.dtype, x.data_ptr() % 16 == 0)
    if kernel is None:
        return found
    a = kernel.a
    return (*found, None if a is None else (a.dtype, a.data_ptr() % 16 == 0), len(kernel.coef))


def table_of(kernel: Kernel, relative: bool) -> Tensor | None:
    """The constants of a mixture's terms as ``triton_math.mixture`` reads them."""
    if kernel.kind != "mixture":
        return None
    if kernel.tables is not None:
        return kernel.tables[int(relative)]
    assert kernel.a is not None
    batches = kernel.a.shape[0]
    table = torch.empty(
        (batches, kernel.terms, COLUMNS.value), dtype=torch.float32, device=kernel.a.device
    )
    launch(
        mixture_table,
        batches,
        traits_of(kernel.a),
        (kernel.a, kernel.offset, kernel.weight, kernel.base, table, kernel.terms),
        RELATIVE=relative,
        QP=power_of_two(kernel.terms),
        num_warps=1,
        num_stages=3,
    )
    return table


def direct_sums(
    rows: Tensor,
    cols: Tensor,
    kernel: Kernel,
    row_start: int,
    gradient: bool,
    cross: Cross = NO_CROSS,
    block: int = 16,
    warps: int = 4,
) -> tuple[Tensor, Tensor | None]:
    """The programs' float64 sums (B, parts); the gradient (with ``cross`` of the statistic)."""
    batches, m, d = rows.shape
    n = cols.shape[1]
    tiles = -(-m // block)
    part = torch.empty((batches, tiles), dtype=torch.float64, device=rows.device)
    grad = None
    if gradient:
        grad = torch.empty(rows.shape, dtype=torch.float32, device=rows.device)
    arguments = (
        rows,
        cols,
        kernel.a,
        kernel.offset,
        kernel.weight,
        kernel.base,
        table_of(kernel, False),
        kernel.coef,
        *kernel.inverse_c,
        cross.numbers,
        part,
        None,
        None,
        grad,
        m,
        n,
        row_start,
        kernel.terms,
        kernel.batch_step,
        tiles,
        cross.first,
        cross.second,
    )
    constants, options = direct_constants(kernel, cross, None, gradient, n, d, block, warps)
    traits = (*traits_of(rows, kernel), *traits_of(cols))
    launch(direct, batches * tiles, traits, arguments, **constants, **options)
    return part, grad


def direct_constants(
    kernel: Kernel,
    cross: Cross,
    finish: torch.dtype | None,
    gradient: bool,
    n: int,
    d: int,
    block: int,
    warps: int = 4,
) -> tuple[dict[str, Any], dict[str, int]]:
    """What ``direct`` is compiled for; ``finish`` is the answer's type if it is to give one."""
    constants = {
        "KIND": KINDS[kernel.kind],
        "BASE": kernel.bases,
        "SPECIAL": from_special_unit(n),
        "CROSS": cross.kind,
        "FINISH": finish is not None,
        "LIMIT": 0.0 if finish is None else largest(finish),
        "GRAD": gradient,
        "PRODUCTS": d > MOST_DIFFERENCES,
        "D": d,
        "DP": max(16, power_of_two(d)),
        "BM": block,
        "BN": min(64 if n <= 64 else 128, 4096 // block),  # more would not fit the registers
    }
    return constants, {"num_warps": warps, "num_stages": 3}


@lru_cache(maxsize=8)
def largest(dtype: torch.dtype) -> float:
    """The largest number of a type."""
    return float(torch.finfo(dtype).max)


def finished(parts: Parts, z: Tensor, cross: Cross, gradient: bool) -> tuple[Tensor, Tensor | None]:
    """The statistic in the type of z, and its gradient in float32."""
    batches, n, d = z.shape
    value = torch.empty(batches, dtype=z.dtype, device=z.device)
    grad, tiles, width, block, splits = None, 1, 1, 1, 0
    if gradient:
        assert parts.pulls is not None
        if parts.pulls.shape[0] == 1:
            grad = parts.pulls[0]  # in place
        else:
            grad = torch.empty(z.shape, dtype=torch.float32, device=z.device)
        width = power_of_two(d)
        block = max(1, 2048 // width)
        tiles, splits = -(-n // block), parts.pulls.shape[0]
    arguments = (
        parts.pairs,
        parts.cross,
        parts.pulls,
        parts.cross_slope,
        z,
        cross.numbers,
        value,
        grad,
        0 if parts.pairs is None else parts.pairs.shape[1],
        0 if parts.cross is None else parts.cross.shape[1],
        n,
        batches * n,
        tiles,
        splits,
    )
    launch(
        finish,
        batches * tiles,
        traits_of(z),
        arguments,
        LIMIT=largest(z.dtype),
        GRAD=gradient,
        D=d,
        DP=width,
        BR=block,
        num_warps=4,
        num_stages=3,
    )
    return value, grad
