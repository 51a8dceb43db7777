"""What the paper concludes from trained networks, tested on ours."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from statistics import median

from scipy import stats

from smmd.paper.answer import Answer, Results, Verdict
from smmd.paper.model import SIGMAS
from smmd.paper.wae import BAND

VERSIONS = ("code-norm", "adaptive-bn", "adaptive-plain")
#: What three standard errors on one side are in probability.
ONE_SIDED = float(stats.norm.sf(SIGMAS))


def _seeds(results: Results, column: str) -> dict[str, list[float]]:
    """Every seed's number, by version."""
    cells = [c for c in results["wae"].table("wae-seeds").cells if c.column == column]
    return {version: [c.ours for c in cells if c.row[0] == version] for version in VERSIONS}


def _codenorm_is_better(
    results: Results, column: str, claim: str, distance: Callable[[float], float]
) -> Answer | None:
    """By ranks: a seed in ten may collapse, and its number is then larger than all others' sum."""
    if "wae" not in results:
        return None
    found = _seeds(results, column)
    if not all(found.values()):
        return None
    if min(map(len, found.values())) < 2:
        return _open(
            claim, "A single training of a version does not tell what the next would give."
        )
    means = results["wae"].table("wae").cells
    notes = {version: c.note for version in VERSIONS for c in means if c.row[0] == version}
    best, *others = VERSIONS
    alike = [v for v in others if bool(notes[v]) == bool(notes[best])]
    recipes = "; ".join(f"{v}: {note or 'the paper’s recipe'}" for v, note in notes.items())
    if not alike:
        return _open(claim, f"The versions were trained by different recipes ({recipes}).")
    own = [distance(x) for x in found[best]]
    wins, losses, words = 0, 0, []
    for version in alike:
        theirs = [distance(x) for x in found[version]]
        better, worse = (
            float(stats.mannwhitneyu(own, theirs, alternative=side).pvalue)
            for side in ("less", "greater")
        )
        wins, losses = wins + (better < ONE_SIDED), losses + (worse < ONE_SIDED)
        words.append(f"than {version} with p = {better:.2g}")
    medians = ", ".join(f"{v} {median(found[v]):.4g}" for v in (best, *alike))
    verdict: Verdict = "no" if losses else "partly" if wins else "open"
    if wins == len(others):
        verdict = "yes"
    rest = "" if not any(notes.values()) else f"  ({recipes}.)"
    return Answer(
        claim,
        verdict,
        f"Medians over seeds: {medians}; by their ranks code-norm is better "
        f"{' and '.join(words)}.{rest}",
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
    inside = []
    for version, values in _seeds(results, "B").items():
        inside.append(f"{sum(abs(b) <= BAND for b in values)} of {len(values)} ({version})")
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
