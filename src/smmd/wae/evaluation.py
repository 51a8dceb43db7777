"""What a trained run is worth on its test set: pictures, codes and samples in numbers.

evaluation = smmd.wae.evaluate(run)     # also written to run.folder / "evaluation.json"
print(evaluation)
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

import smmd
from smmd import files
from smmd.kernels import Gaussian
from smmd.normality.words import p_short, rounded_up
from smmd.wae import latent, quality, sample
from smmd.wae.data import Dataset

#: The file that holds an evaluation, in the run's folder.
FILE = "evaluation.json"
#: At most this many samples are drawn to be judged.
MOST_SAMPLES = 10_000


class Trained(Protocol):
    """What is asked of a run: ``smmd.wae.Run``, or anything that encodes and decodes."""

    folder: Path | None
    config: Any
    record: dict[str, Any]
    log: list[dict[str, Any]]

    def encode(self, pictures: Any, *, rng: Any = None) -> np.ndarray: ...
    def decode(self, codes: Any) -> np.ndarray: ...
    def dataset(self) -> Dataset: ...


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Everything about one run on its test set; ``print`` shows it as a table.

    run, data, version, seed, epochs    which run
    n, d                test codes and their dimension
    scale               of the kernel, γ² = scale·d
    mse                 mean squared error of test images, pixels in 0…1
    mse_principal       the same for as many principal components as there are latent dimensions
    skewness, kurtosis  Mardia's skewness and normalized kurtosis of the test codes
    skewness_null       the mean of that skewness for n standard normal codes
    kurtosis_sd         the standard deviation of that kurtosis for n standard normal codes
    b, whole            B-statistic with its bands; all test codes at once with the p-value
    axes                each latent dimension
    n_outliers, outliers    codes too far out: how many, and the furthest
    quality             samples as a classifier sees them
    """

    run: str
    data: str
    version: str
    seed: int
    epochs: int
    n: int
    d: int
    scale: float
    mse: float
    mse_principal: float
    skewness: float
    skewness_null: float
    kurtosis: float
    kurtosis_sd: float
    b: latent.BReading
    whole: latent.Whole
    axes: tuple[latent.Axis, ...]
    n_outliers: int
    outliers: tuple[latent.Outlier, ...]
    quality: quality.Quality

    @property
    def tone(self) -> Literal["good", "warn", "bad"]:
        """The verdict in a word."""
        if self.mse >= self.mse_principal or self.b.value > 2.0:
            return "bad"
        return "good" if self.b.inside else "warn"

    def verdict(self) -> str:
        """The findings in a few sentences."""
        low, high = self.b.exact
        where = f"B = {signed(self.b.value)}, band {signed(low)} to {signed(high)}"
        if self.b.inside:
            can = f"as far as batches of {self.b.size} can tell"
            first = f"The latent space is normal {can} ({where})."
        else:
            far = "clearly" if self.b.value > 2.0 else "slightly"
            first = f"The latent space is {far} off N(0, I) ({where})."
        return " ".join([first, self._whole_sentence(), self._pictures_sentence()])

    def _whole_sentence(self) -> str:
        text = f"All {self.n:,} test codes together give SMMD² = {signed(self.whole.smmd)}"
        if self.whole.pvalue > 0.05:
            return f"{text}, {p_text(self.whole.pvalue)}: no departure is seen."
        needed = self.whole.codes_needed
        shows = (
            ""
            if needed is None
            else f", which shows from about {rounded_up(max(needed, 2.0))} codes on"
        )
        return f"{text}, {p_text(self.whole.pvalue)}: a departure{shows}."

    def _pictures_sentence(self) -> str:
        linear = f"{self.mse_principal:.4f} of {self.components}"
        better = "against" if self.mse < self.mse_principal else "no better than the"
        return f"Test images come back with MSE {self.mse:.4f}, {better} {linear}."

    @property
    def components(self) -> str:
        """As many principal components as there are latent dimensions, in words."""
        return f"{self.d} principal component{'s' if self.d > 1 else ''}"

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Evaluation:
        """The inverse of ``to_json``."""
        parts = dict(values)
        b = {**parts["b"], "band": tuple(parts["b"]["band"]), "exact": tuple(parts["b"]["exact"])}
        parts["b"] = latent.BReading(**b)
        parts["whole"] = latent.Whole(**parts["whole"])
        parts["axes"] = tuple(latent.Axis(**axis) for axis in parts["axes"])
        parts["outliers"] = tuple(latent.Outlier(**one) for one in parts["outliers"])
        parts["quality"] = quality.Quality(**parts["quality"])
        return cls(**parts)

    def rows(self) -> list[tuple[str, str, str]]:
        """(what, value, what to compare it with), as printed and as in the report."""
        q, b = self.quality, self.b
        found = [
            (
                "test MSE",
                f"{self.mse:.4f}",
                f"{self.components}: {self.mse_principal:.4f}",
            ),
            ("B-statistic", signed(b.value), _bands(b)),
            (
                "SMMD², all test codes",
                signed(self.whole.smmd),
                f"{p_text(self.whole.pvalue)} ({self.whole.method})",
            ),
            (
                "Mardia skewness",
                f"{self.skewness:.3f}",
                f"mean under N(0, I): {self.skewness_null:.3f}",
            ),
            (
                "normalized kurtosis",
                signed(self.kurtosis),
                f"under N(0, I): 0 ± {self.kurtosis_sd:.2f}",
            ),
            (
                "axes that depart",
                f"{sum(axis.departs for axis in self.axes)} of {self.d}",
                f"at {latent.ALPHA:.0%} for all together, {self.n:,} codes",
            ),
            (
                "outlying codes",
                f"{self.n_outliers}",
                f"fewer than {latent.EXPECTED_BEYOND} expected",
            ),
            (
                "Fréchet, samples",
                f"{q.samples:.3f}",
                f"real training images: {q.floor:.3f}; not FID (see the notes)",
            ),
            ("Fréchet, reconstructions", f"{q.reconstructions:.3f}", f"in {_space(q)}"),
        ]
        if q.coverage is not None and q.class_distance is not None:
            found.append(
                (
                    "classes in samples",
                    f"{q.coverage} of {q.classes}",
                    f"distance from the data's shares: {q.class_distance:.2f}",
                )
            )
        return found

    def __str__(self) -> str:
        rows = self.rows()
        widths = [max(len(row[k]) for row in rows) for k in (0, 1)]
        lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}   {c}" for a, b, c in rows]
        head = f"{self.run}: {self.version} on {self.data}, d = {self.d}, seed {self.seed}"
        return "\n".join([head, "", *lines, "", self.verdict()])


def evaluate(run: Trained, *, write: bool = True) -> Evaluation:
    """Evaluate a run on its test set; ``write`` keeps the result in the run's folder.

    The same run gives the same numbers: batches, samples and the judging classifier come from
    fixed seeds, so that several runs on the same data are measured alike.
    """
    data = run.dataset()
    codes = checked_codes(run, data.test)
    n, d = codes.shape
    kernel = Gaussian(run.config.scale)
    judge = quality.judge_of(data)
    error, back = _reconstructed(run, data, judge)
    random = sample.draws(min(max(n, 1000), MOST_SAMPLES), d)
    samples = [judge.features(run.decode(chunk)) for chunk in quality.chunks(random)]
    skewness, kurtosis = smmd.mardia(codes)
    fourth = d * (d + 2)
    many, furthest = latent.outliers(codes)
    evaluation = Evaluation(
        run=run.folder.name if run.folder else "a run that is not kept",
        data=data.name,
        version=run.config.version,
        seed=run.config.seed,
        epochs=int(run.log[-1]["epoch"]) if run.log else 0,
        n=n,
        d=d,
        scale=run.config.scale,
        mse=error,
        mse_principal=_principal_error(data, d),
        skewness=float(skewness),
        skewness_null=fourth * (d + 4) / n,
        kurtosis=float(kurtosis),
        # Var‖x‖⁴ under N(0, I), from the moments of χ²_d.
        kurtosis_sd=math.sqrt((fourth * (d + 4) * (d + 6) - fourth**2) / n),
        b=latent.b_statistic(codes, kernel),
        whole=latent.whole(codes, kernel),
        axes=latent.axes(codes, kernel),
        n_outliers=many,
        outliers=furthest,
        quality=quality.assess(data, np.concatenate(samples), back),
    )
    if write and run.folder:
        files.atomic_write(run.folder / FILE, json.dumps(evaluation.to_json(), indent=1) + "\n")
    return evaluation


def checked_codes(run: Trained, pictures: np.ndarray) -> np.ndarray:
    """The codes of ``pictures`` as float64, or a clear error; of a random encoder, draws, which
    are what has to be normal."""
    codes = np.asarray(run.encode(pictures, rng=0), dtype=np.float64)
    if not np.isfinite(codes).all():
        raise ValueError(
            f"{run.folder or 'the run'}: the encoder gives codes that are not finite; the run has "
            "diverged, train it again with a smaller learning rate"
        )
    return codes


def _reconstructed(run: Trained, data: Dataset, judge: quality.Judge) -> tuple[float, np.ndarray]:
    """Mean squared error over all pixels and channels in 0…1, and features of what comes back.

    Of a random encoder the means are decoded, as in the training log.
    """
    total, features = 0.0, []
    for chunk in quality.chunks(data.test):
        back = run.decode(run.encode(chunk))
        total += float(np.sum((quality.unit(chunk) - back).astype(np.float64) ** 2))
        features.append(judge.features(back))
    return total / data.test.size, np.concatenate(features)


def _principal_error(data: Dataset, d: int) -> float:
    """Test error of the best linear code of the same dimension, learned from training images."""
    mean, directions = quality.principal_components(data.train, d)
    total = 0.0
    for chunk in quality.chunks(data.test):
        rows = quality.unit(chunk).reshape(len(chunk), -1) - mean
        total += float(np.sum(rows.astype(np.float64) ** 2) - np.sum((rows @ directions) ** 2))
    return total / data.test.size


def _bands(b: latent.BReading) -> str:
    low, high = b.exact
    return f"3σ ± {b.band[1]:.3f}; exact {low:+.3f} to {high:+.3f}".replace("-", "−")


def _space(q: quality.Quality) -> str:
    if q.accuracy is None:
        return "principal components (the data have no labels)"
    return f"a classifier's features ({q.accuracy:.1%} right on test images)"


def signed(value: float) -> str:
    """Three significant digits or so, with a true minus sign."""
    text = f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"
    return text.replace("-", "−")


def p_text(p: float) -> str:
    """As people write p-values."""
    return f"p < {p_short(p)[1:]}" if p < 1e-300 else f"p = {p_short(p)}"
