"""What an item is: a table or figure, or a claim of the paper that we recompute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from smmd.paper.model import Cell, Result
from smmd.paper.work import Work


def _unexplained(cell: Cell) -> str:
    return ""


@dataclass(frozen=True)
class Item:
    """One table, figure or claim.

    ``draw`` makes a matplotlib figure of a result; ``reason`` says why a cell differs from the
    paper, or "" if that is not known.  ``recipe`` goes up when the numbers of an unchanged request
    would change, so that stored results are not used again.
    """

    name: str
    title: str
    place: str
    about: str
    compute: Callable[[Work], Result]
    draw: Callable[[Any, Result], Any] | None = None
    reason: Callable[[Cell], str] = _unexplained
    #: The fields of ``work.Sizes`` that the numbers depend on.
    uses: tuple[str, ...] = ()
    needs_training: bool = False
    #: Items are computed in this order; on the page they stand in the paper's.
    turn: int = 0
    recipe: int = 1
