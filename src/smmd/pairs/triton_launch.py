"""Launching the kernels: memory, grids and arguments."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from smmd.pairs.triton_math import COLUMNS, GAUSSIAN, MIXTURE, PROFILE, mixture_table
from smmd.pairs.triton_plan import Kernel, power_of_two

KINDS = {"gaussian": GAUSSIAN.value, "mixture": MIXTURE.value, "profile": PROFILE.value}

#: Whether kernels run on the CPU, in Triton's interpreter.
INTERPRETED = os.environ.get("TRITON_INTERPRET", "0") not in ("", "0")

_compiled: dict[tuple[Any, ...], Any] = {}


class Bound:
    """``kernel[(programs,)](*arguments, **constants)``, fast from the second time on.

    Triton looks at every argument of every launch anew, which takes longer than small samples do.
    What it would find is known from ``traits`` (the caller's types, alignments and numbers of
    terms; all else the caller made itself) and the constants: if these were met before, the
    compiled kernel is called at once.
    """

    def __init__(
        self, kernel: Any, programs: int, num_warps: int = 4, num_stages: int = 3, **constants: Any
    ) -> None:
        self.kernel, self.programs = kernel, programs
        self.options = {"num_warps": num_warps, "num_stages": num_stages}
        self.constants, self.values = constants, tuple(constants.values())
        self.ready: dict[Any, Any] = {}

    def __call__(self, traits: Any, arguments: tuple[Any, ...]) -> None:
        run = self.ready.get(traits)
        if run is not None:
            run(*arguments, *self.values)
            return
        key = (self.kernel.__name__, traits, *self.values, *self.options.values())
        made = _compiled.get(key)
        if made is None:
            made = first(self.kernel, self.programs, arguments, self.constants | self.options)
        else:
            made[(self.programs, 1, 1)](*arguments, *self.values)
        if not INTERPRETED:
            _compiled[key] = made
            self.ready[traits] = made[(self.programs, 1, 1)]


def launch(
    kernel: Any, programs: int, traits: Any, arguments: tuple[Any, ...], **constants: Any
) -> None:
    """Once, what ``Bound`` does again and again."""
    Bound(kernel, programs, **constants)(traits, arguments)


def first(kernel: Any, programs: int, arguments: tuple[Any, ...], constants: dict[str, Any]) -> Any:
    """Compile and launch; the compiled kernel."""
    return kernel[(programs,)](*arguments, **constants)


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


@lru_cache(maxsize=8)
def largest(dtype: torch.dtype) -> float:
    """The largest number of a type."""
    return float(torch.finfo(dtype).max)
