"""A claim of the paper's, and what our numbers say to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from smmd.paper.model import Result

#: "open" where our numbers do not decide.
Verdict = Literal["yes", "no", "partly", "open"]
Results = Mapping[str, Result]


@dataclass(frozen=True)
class Answer:
    claim: str
    verdict: Verdict
    evidence: str
    place: str


def verdict(holds: list[bool]) -> Verdict:
    """Of a claim with several parts."""
    return "yes" if all(holds) else "partly" if any(holds) else "no"
