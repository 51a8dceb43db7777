"""What the paper concludes from trained networks, tested on ours."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from smmd.paper.answer import Answer, Results
from smmd.paper.model import SIGMAS, Cell
from smmd.paper.wae import BAND

VERSIONS = ("code-norm", "adaptive-bn", "adaptive-plain")


def _wae(results: Results, column: str) -> dict[str, Cell] | None:
    if "wae" not in results:
        return None
    cells = [c for c in results["wae"].table("wae").cells if c.column == column]
    return {version: c for version in VERSIONS for c in cells if c.row[0] == version}


def _codenorm_is_better(
    results: Results, column: str, claim: str, distance: Callable[[float], float]
) -> Answer | None:
    cells = _wae(results, column)
    if cells is None or len(cells) < len(VERSIONS):
        return None
    notes = {version: c.note for version, c in cells.items()}
    if any(c.error is None or math.isnan(c.error) for c in cells.values()):
        return _open(
            claim, "A single training of a version does not tell what the next would give."
        )
    if any(notes.values()) and not all(notes.values()):
        said = "; ".join(f"{v}: {note or 'the paper’s recipe'}" for v, note in notes.items())
        return _open(claim, f"The versions were trained by different recipes ({said}).")
    best, *others = (cells[version] for version in VERSIONS)
    gaps = [
        (distance(other.ours) - distance(best.ours))
        / max(math.hypot(other.error or 0.0, best.error or 0.0), 1e-300)
        for other in others
    ]
    holds = [gap > SIGMAS for gap in gaps]
    # Undecided, or better than one of the two only: partly.
    shown = ", ".join(f"{v} {c.ours:.4g} ± {c.error or 0:.2g}" for v, c in cells.items())
    return Answer(
        claim,
        "yes" if all(holds) else "no" if min(gaps) < -SIGMAS or max(gaps) <= 0.0 else "partly",
        f"Means over seeds: {shown}; code-norm is better by {gaps[0]:.1f} and {gaps[1]:.1f} "
        "standard errors." + "".join(f"  ({v}: {note}.)" for v, note in notes.items() if note),
        "Section 4, “WAE results”",
    )


def _open(claim: str, why: str) -> Answer:
    return Answer(claim, "open", why, "Section 4, “WAE results”")


def codenorm_reconstructs(results: Results) -> Answer | None:
    return _codenorm_is_better(
        results, "test MSE", "Code normalization gives the best test reconstruction.", float
    )


def codenorm_has_low_kurtosis(results: Results) -> Answer | None:
    return _codenorm_is_better(
        results, "kurtosis", "Code normalization gives the lowest kurtosis: no outliers.", float
    )


def codenorm_has_low_skewness(results: Results) -> Answer | None:
    return _codenorm_is_better(
        results, "skewness", "Code normalization gives the lowest skewness.", float
    )


def codenorm_is_normal(results: Results) -> Answer | None:
    claim = "Code normalization gives the B-statistic nearest to zero, inside ±0.424."
    found = _codenorm_is_better(results, "B", claim, abs)
    if found is None or found.verdict == "open":
        return found
    every = [c for c in results["wae"].table("wae-seeds").cells if c.column == "B"]
    inside = []
    for version in VERSIONS:
        seeds = [abs(c.ours) <= BAND for c in every if c.row[0] == version]
        inside.append(f"{sum(seeds)} of {len(seeds)} ({version})")
    return replace(found, evidence=f"{found.evidence}  Inside the band: {', '.join(inside)}.")


def removal_raises_kurtosis(results: Results) -> Answer | None:
    if "codenorm-removal" not in results:
        return None
    facts = results["codenorm-removal"].facts
    notes = {cell.note for cell in results["codenorm-removal"] if cell.note}
    gap, error = facts["gap"], facts["error"]
    claim = "Removing code normalization from a trained network and training on raises kurtosis."
    if math.isnan(error):
        return _open(claim, "A single network does not tell what the next would do.")
    return Answer(
        claim,
        "yes" if gap > SIGMAS * error else "no" if gap < SIGMAS * error / 3.0 else "partly",
        f"Normalized kurtosis goes from {facts['before']:.2f} to {facts['without']:.2f} without "
        f"the layer and to {facts['with']:.2f} with it, trained on for as long: a difference of "
        f"{gap:.2f} ± {error:.2f} over {facts['seeds']:.0f} networks."
        + "".join(f"  ({note}.)" for note in notes),
        "Section 4, “WAE results”",
    )
