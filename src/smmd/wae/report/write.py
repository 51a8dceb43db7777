"""The page itself: what comes in which order, and in which words."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import numpy as np

from smmd.normality.words import p_short
from smmd.report.page import Page
from smmd.wae import latent, spread
from smmd.wae.config import VERSIONS
from smmd.wae.data import Dataset
from smmd.wae.evaluation import Evaluation, Trained, checked_codes, evaluate, p_text, signed
from smmd.wae.report import curves, explorer, figures, pictures

#: The file's name in the run's folder.
FILE = "report.html"


def write(run: Trained, evaluation: Evaluation | None = None) -> Path:
    """Write the report of a run into its folder and say where; evaluates the run if need be."""
    if run.folder is None:
        raise ValueError("the run is kept nowhere: give fit(..., out=...) a folder for its report")
    evaluation = evaluation or evaluate(run)
    path = run.folder / FILE
    build(run, evaluation).write(path)
    return path


def build(run: Trained, evaluation: Evaluation) -> Page:
    """The page."""
    data = run.dataset()
    codes = checked_codes(run, data.test)
    influence, walks = explorer.influence_of(run, evaluation.d, pictures.STEPS)
    page = Page(f"{evaluation.run}: a Wasserstein auto-encoder", _lead(evaluation, data))
    page.style(_text("page.css"))
    page.verdict(evaluation.verdict(), evaluation.tone)
    page.html(_cards(evaluation))
    page.heading("What it makes")
    page.html(_trio(run, data, evaluation))
    _explore(page, explorer.build(run, data, codes, influence))
    page.html(pictures.along_axes(walks, influence))
    _curves(page, run.log)
    _latent(page, run, data, codes, evaluation)
    page.heading("All numbers")
    page.table(["", "value", "to compare with"], evaluation.rows())
    page.html(_notes(evaluation))
    page.html(_recipe(run))
    return page


def _lead(evaluation: Evaluation, data: Dataset) -> str:
    channels, height, width = data.shape
    kind = VERSIONS.get(evaluation.version, evaluation.version)
    colour = "grey" if channels == 1 else "colour"
    return (
        f"{evaluation.data}: {len(data.train):,} training and {len(data.test):,} test images, "
        f"{width} × {height} pixels, {colour}. {evaluation.d} latent dimension"
        f"{'s' if evaluation.d > 1 else ''}, {kind}; {evaluation.epochs} epochs, "
        f"seed {evaluation.seed}."
    )


def _cards(evaluation: Evaluation) -> str:
    b, q = evaluation.b, evaluation.quality
    low, high = b.exact
    axes = sum(axis.departs for axis in evaluation.axes)
    cards = [
        _card(
            "Test MSE",
            f"{evaluation.mse:.4f}",
            f"{evaluation.mse_principal:.4f} with {evaluation.components}",
        ),
        _card(
            "B-statistic",
            signed(b.value),
            f"normal codes: {signed(low)} to {signed(high)}",
            _gauge(b.value, low, high),
        ),
        _card(
            "SMMD², all codes",
            signed(evaluation.whole.smmd),
            f"0 ± 1 if normal; {p_text(evaluation.whole.pvalue)}",
        ),
        _card(
            "Axes off N(0, 1)",
            f"{axes} of {evaluation.d}",
            f"seen with {evaluation.n:,} codes; {evaluation.n_outliers} outlying codes",
        ),
    ]
    if q.coverage is None:
        cards.append(
            _card(
                "Fréchet distance, samples",
                f"{q.samples:.3f}",
                f"{q.floor:.3f} for real images; not FID",
            )
        )
    else:
        cards.append(
            _card(
                "Classes in samples",
                f"{q.coverage} of {q.classes}",
                f"Fréchet distance {q.samples:.3f} ({q.floor:.3f} for real images)",
            )
        )
    return f'<div class="cards">{"".join(cards)}</div>'


def _card(title: str, value: str, words: str, gauge: str = "") -> str:
    return (
        f'<div class="card"><h3>{html.escape(title)}</h3><p class="value">{html.escape(value)}</p>'
        f"{gauge}<p>{html.escape(words)}</p></div>"
    )


def _gauge(value: float, low: float, high: float) -> str:
    """A bar with the band on it and the value as a mark, at the bar's end if it is further out."""
    reach = 2.0 * max(-low, high)

    def place(x: float) -> float:
        return 50.0 + 50.0 * float(np.clip(x / reach, -1.0, 1.0))

    out = "" if low <= value <= high else " class=out"
    left, right = place(low), place(high)
    return (
        f'<div class="gauge" aria-hidden="true"><i style="left:{left:.1f}%;'
        f'width:{right - left:.1f}%"></i><b{out} style="left:{place(value):.1f}%"></b></div>'
    )


def _trio(run: Trained, data: Dataset, evaluation: Evaluation) -> str:
    d = evaluation.d
    slice_words = "a line through the origin of" if d == 1 else "a plane through the origin of"
    parts: Sequence[tuple[str, str, str]] = (
        (
            pictures.reconstructions(run, data),
            "Reconstructions",
            "odd rows are real test images, below each its reconstruction",
        ),
        (pictures.random_samples(run, data, d), "Random samples", "codes drawn from N(0, I)"),
        (
            pictures.planar_slice(run, data, d),
            "A slice",
            f"codes on {slice_words} the code space, ± 2.5 standard deviations",
        ),
    )
    made = "".join(
        f"<figure>{image}<figcaption><b>{title}</b>: {words}</figcaption></figure>"
        for image, title, words in parts
    )
    return f'<div class="trio">{made}</div>'


def _explore(page: Page, made: explorer.Explorer) -> None:
    page.heading("Explore", anchor="explore")
    plan = made.plan
    words = (
        "The decoder's image follows as you drag across a plane of two latent axes; the other "
        "coordinates stay those of the starting point."
    )
    if plan.dropped:
        words += (
            f" Shown are the {len(plan.axes)} axes of {len(plan.axes) + plan.dropped} that change "
            "the image most."
        )
    page.text(words)
    page.style(made.style)
    page.html(made.html)
    page.script(made.script)


def _curves(page: Page, log: curves.Log) -> None:
    if not log:
        return
    page.heading("Training")
    page.figure(curves.draw(log), curves.CAPTION, "Training curves")


def _latent(
    page: Page, run: Trained, data: Dataset, codes: np.ndarray, evaluation: Evaluation
) -> None:
    page.heading("The latent space")
    page.figure(
        figures.scatter(data, codes, evaluation),
        "Codes of test images; circles at one, two and three standard deviations."
        if evaluation.d > 1
        else "Codes of test images and the density of N(0, 1).",
    )
    page.heading("Axis by axis", 3)
    page.figure(
        figures.qq_axes(codes, evaluation),
        "Quantiles of the codes against those of N(0, 1), with the band that each point keeps in "
        f"99 % of normal samples of {evaluation.n:,}. Red axes depart from N(0, 1) at a level of "
        "1 % for all axes together.",
    )
    folded = evaluation.d > figures.MOST_PLOTS
    if folded:
        page.html("<details><summary>All axes in numbers</summary>")
    page.html('<div class="pair">')
    page.table(
        ["axis", "mean", "sd", "skewness", "excess kurtosis", "SMMD²", "p (Holm)"],
        [_axis_row(axis) for axis in evaluation.axes],
    )
    if folded:
        page.html("</div></details><div>")
    page.figure(
        figures.qq_radius(codes),
        "Distances of the codes from the origin against those of normal codes, with the same band.",
    )
    page.html("</div>")
    if evaluation.n_outliers:
        many = evaluation.n_outliers
        have = "1 test image has a code" if many == 1 else f"{many} test images have codes"
        page.text(
            f"{have} further out than any of {evaluation.n:,} normal codes should lie; the "
            "furthest, above their reconstructions:"
        )
        page.html(pictures.outliers(run, data, evaluation))


def _axis_row(axis: latent.Axis) -> list[str]:
    moments = (axis.mean, axis.sd, axis.skewness, axis.kurtosis)
    return [f"z{axis.axis}", *map(_cell, moments), signed(axis.smmd), p_short(axis.pvalue)]


def _cell(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")


def _notes(evaluation: Evaluation) -> str:
    q, b = evaluation.quality, evaluation.b
    words = [
        f"B is the mean SMMD² of {b.batches} random batches of {b.size} test codes, with the "
        f"kernel of scale {evaluation.scale:g}. Normal codes leave its exact band in 0.27 % of "
        "cases, as a normal variable leaves three sigma; SMMD² is skewed, so the band is, too.",
        "A test on thousands of codes sees departures that no batch and no eye sees: the p-value "
        "says whether there is one, SMMD² and the number of codes needed how large it is.",
        "Fréchet distances here are not FID. They are taken "
        + (
            "in 64 principal components of the training images"
            if q.accuracy is None
            else f"in the 64 features of a small classifier trained on {evaluation.data} alone "
            f"({q.accuracy:.1%} of test images right)"
        )
        + ", divided by the real features' total variance, so that they compare runs on the same "
        "data only.",
    ]
    return "".join(f"<p>{html.escape(text)}</p>" for text in words)


def _recipe(run: Trained) -> str:
    """What it takes to repeat the run."""
    text = json.dumps(run.record, indent=2)
    return (
        "<details><summary>How to repeat this run</summary>"
        f"<pre>{html.escape(text)}</pre></details>"
    )


def write_spread(folder: Path, evaluations: Sequence[Evaluation]) -> Path:
    """The page of several seeds: their spread, and a link to each seed's own page."""
    first = evaluations[0]
    several = f"{len(evaluations)} seed{'s' if len(evaluations) > 1 else ''}"
    page = Page(
        f"{folder.name}: {several}",
        f"{first.data}, latent dimension {first.d}, "
        f"{VERSIONS.get(first.version, first.version)}; {first.epochs} epochs.",
    )
    inside = sum(one.b.inside for one in evaluations)
    page.verdict(spread.verdict(evaluations), "good" if inside == len(evaluations) else "warn")
    page.figure(
        figures.seeds(evaluations),
        "A dot for each seed and a line at the mean; grey: what normal codes give "
        "(B: exact band, kurtosis: three standard deviations).",
    )
    headers, lines = spread.rows(evaluations)
    page.table(headers, lines, "Mean and standard deviation over seeds, then each seed.")
    page.heading("Each seed")
    for one in evaluations:
        page.html(
            f'<p><a href="{html.escape(one.run)}/{FILE}">{html.escape(one.run)}</a>: '
            f"{html.escape(one.verdict())}</p>"
        )
    path = folder / FILE
    page.write(path)
    return path


def _text(name: str) -> str:
    return (resources.files("smmd.wae.report") / name).read_text(encoding="utf-8")
