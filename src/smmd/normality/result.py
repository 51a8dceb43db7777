"""What a test of normality answers: numbers, a text and a figure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from smmd.frames import quoted
from smmd.kernels import Kernel
from smmd.normality import words
from smmd.normality.reference import Law
from smmd.normality.statistics import STATISTICS

#: From so many rows on a rejection is told together with the size of what was found.
MANY_ROWS = 1000


@dataclass(frozen=True, eq=False)
class NormalityResult:
    """The answer of ``normality_test``.

    Attributes
    ----------
    statistic, pvalue : float
    threshold : float
        What the statistic exceeds with probability ``alpha`` under the null; for the two-sided
        Mardia kurtosis, its absolute value.
    rejected : bool
        ``pvalue <= alpha``.
    alpha, n, d, null
        As tested: rows with missing values left out, d after projection if one was asked for.
    statistic_name : str
    kernel : Kernel or None
        None for statistics without one.
    method : str
        "analytic" or "monte-carlo": the one used, which need not be the one asked for.
    pvalue_standard_error : float or None
        Of a simulated p-value; None where nothing was simulated.
    n_resamples, n_omitted : int
        Simulated samples (0 if none), and rows left out for missing values.
    notes : tuple of str
        What else there is to know.
    names : tuple of str
        The columns.
    null_distribution
        The law of the statistic under the null, with ``sf`` and ``isf``.
    distances : array (n,)
        Squared Mahalanobis distances of the rows from what the null estimates.
    """

    statistic: float
    pvalue: float
    threshold: float
    rejected: bool
    alpha: float
    n: int
    d: int
    null: str
    statistic_name: str
    kernel: Kernel | None
    method: str
    null_distribution: Law = field(repr=False)
    distances: np.ndarray = field(repr=False)
    pvalue_standard_error: float | None = None
    n_resamples: int = 0
    n_omitted: int = 0
    notes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    description: str = field(default="", repr=False)

    @property
    def label(self) -> str:
        """The statistic's name in prose."""
        return STATISTICS[self.statistic_name].label

    @property
    def rows_needed(self) -> float | None:
        """About how many rows a departure of this size takes to be seen; None if not rejected.

        The excess of SMMD² and BHEP over their null mean grows in proportion to n.
        """
        mean = getattr(self.null_distribution, "mean", None)
        if not self.rejected or self.statistic_name not in ("smmd", "bhep"):
            return None
        if not isinstance(mean, float) or not mean < self.threshold < self.statistic:
            return None
        return self.n * (self.threshold - mean) / (self.statistic - mean)

    def verdict(self) -> str:
        """The finding in one sentence."""
        level = f"at the {words.percent(self.alpha)} level"
        if self.rejected:
            return (
                f"Normality is rejected {level}: a normal sample of this size gives a value "
                f"this large with probability {self.p_text()}."
            )
        return (
            f"Normality is not rejected {level}: a normal sample of this size gives a value "
            f"this large with probability {self.p_text()}."
        )

    def caution(self) -> str:
        """What the verdict does not mean."""
        if not self.rejected:
            return (
                f"That does not show that the data are normal, only that {words.count(self.n)} "
                "rows do not show otherwise."
            )
        rows = self.rows_needed
        if self.n < MANY_ROWS:
            return ""
        size = (
            f"  A departure of this size shows from about {words.rounded_up(rows)} rows on."
            if rows is not None
            else ""
        )
        return (
            f"With {words.count(self.n)} rows a test finds departures too small to matter: "
            f"rejected does not mean far from normal.{size}"
        )

    def p_text(self) -> str:
        """The p-value with its error, as text."""
        return words.p_value(self.pvalue, self.pvalue_standard_error, self.n_resamples)

    def __str__(self) -> str:
        kernel = "" if self.kernel is None else f"  (kernel {self.kernel!r})"
        columns = f"{self.d} column{'s' if self.d != 1 else ''}"
        head = (
            f"Are these {words.count(self.n)} rows of {columns} a sample from\n"
            f"{words.NULL_WORDS[self.null]}?"
        )
        law = words.law_words(self.null_distribution, self.description)
        rows = [
            (self.label, f"{words.number(self.statistic)}{kernel}"),
            ("p", f"{self.p_text()}  ({law})"),
            ("threshold", f"{words.number(self.threshold)} at level {self.alpha:g}"),
        ]
        if any(name != str(k) for k, name in enumerate(self.names)):
            rows.insert(0, ("columns", quoted(self.names)))
        sentences = [self.verdict(), self.caution(), *(f"Note: {note}" for note in self.notes)]
        return f"{head}\n\n{words.sheet(rows)}\n\n{words.paragraphs(sentences)}"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, as for JSON."""
        return {
            "statistic": self.statistic,
            "pvalue": self.pvalue,
            "pvalue_standard_error": self.pvalue_standard_error,
            "threshold": self.threshold,
            "rejected": self.rejected,
            "alpha": self.alpha,
            "n": self.n,
            "d": self.d,
            "null": self.null,
            "statistic_name": self.statistic_name,
            "kernel": None if self.kernel is None else repr(self.kernel),
            "method": self.method,
            "n_resamples": self.n_resamples,
            "n_omitted": self.n_omitted,
            "names": list(self.names),
            "notes": list(self.notes),
            "verdict": self.verdict(),
        }

    def plot(self) -> Any:
        """The null law with the statistic in it, and a Q–Q plot of Mahalanobis distances.

        Returns the matplotlib figure; nothing is shown or saved.
        """
        from smmd.normality import plots

        return plots.of_result(self)
