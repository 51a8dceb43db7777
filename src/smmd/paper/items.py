"""What an item is: a table or figure, or a claim of the paper that we recompute."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smmd.paper.model import Cell, Result
from smmd.paper.work import Settings, Work


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
    #: For an item whose parts are results of their own: the result of those that a folder holds.
    gather: Callable[[Path], Result | None] | None = None

    def asked(self, settings: Settings) -> dict[str, Any]:
        """What decides the item's numbers, with a key that changes with it."""
        what = settings.fingerprint(self.uses, self.needs_training)
        text = json.dumps({"recipe": self.recipe, **what}, sort_keys=True)
        return {"key": hashlib.sha256(text.encode()).hexdigest()[:16], **what}
