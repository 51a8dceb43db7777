"""``smmd threshold``: what SMMD² of a normal sample exceeds with a given probability."""

from __future__ import annotations

import json
import math
import warnings
from typing import Annotated, Any

import typer

from smmd.cli import options
from smmd.kernels import Kernel

_DONE = {
    options.NullName.STANDARD: "as they are",
    options.NullName.DIAGONAL: "centred and scaled column by column (code-normalized)",
    options.NullName.NORMAL: "centred and whitened",
}


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("threshold")(threshold)


def threshold(
    n: Annotated[int, typer.Option("-n", help="Number of points: rows, or the batch size.")],
    d: Annotated[int, typer.Option("-d", help="Dimension: columns, or the size of a code.")],
    null: Annotated[
        options.NullName,
        typer.Option(
            help="standard: points compared with N(0, I) as they are.  diagonal: centred and "
            "scaled first, as by code normalization.  normal: whitened first."
        ),
    ] = options.NullName.STANDARD,
    alpha: Annotated[
        float, typer.Option(help="Level: how often a normal sample may exceed the threshold.")
    ] = 0.05,
    scale: options.Scale = None,
    kernel: options.KernelChoice = options.KernelName.GAUSSIAN,
    gamma: options.Gamma = None,
    method: Annotated[
        options.Method,
        typer.Option(
            help="analytic: from the null law, in milliseconds; where that does not hold it is "
            "simulated all the same, and said so.  monte-carlo: always simulated."
        ),
    ] = options.Method.ANALYTIC,
    resamples: Annotated[
        int | None, typer.Option(help="Samples to simulate; default 9999, 1999 for n > 500.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Above which SMMD² are N points in D dimensions not normal?

    SMMD² of points from N(0, I) has mean 0 and variance 1, but is skewed: at level 5 % its
    threshold is 1.7 to 2, not 1.645.  Once the points are centred and scaled (--null diagonal)
    or whitened (--null normal) by their own moments, they are closer to N(0, I) than a sample
    from it, and the threshold falls, below 0 for wide kernels.

    Examples: the paper's table at n = 100, d = 8, code-normalized; the same for a batch of 256
    with a kernel of scale 1/16; any kernel by simulation.

        smmd threshold -n 100 -d 8 --null diagonal

        smmd threshold -n 256 -d 8 --null diagonal --scale 1/16 --alpha 0.01

        smmd threshold -n 100 -d 8 --kernel imq --json
    """
    chosen = options.kernel_of(kernel, scale, gamma)
    result = _found(n, d, alpha, null, chosen, method, resamples)
    typer.echo(json.dumps(result) if as_json else _sheet(result))


def _found(
    n: int,
    d: int,
    alpha: float,
    null: options.NullName,
    kernel: Kernel,
    method: options.Method,
    resamples: int | None,
) -> dict[str, Any]:
    # The tests' room takes long to import: only once it is needed.
    from smmd.normality import SimulatedWarning, reference, statistics
    from smmd.normality import threshold as find
    from smmd.nulls.montecarlo import SimulatedNull

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulatedWarning)  # told below, as a note
        value = find(
            n, d, alpha, null=null.value, kernel=kernel, method=method.value, n_resamples=resamples
        )
    # The same once more, out of the caches, for what there is to tell about it.
    source = reference.find(
        statistics.STATISTICS["smmd"], kernel, null.value, n, d,
        method=method.value, n_resamples=resamples,
    )  # fmt: skip
    error = None
    if isinstance(source.law, SimulatedNull):
        error = source.law.isf_standard_error(alpha)
    return {
        "n": n,
        "d": d,
        "null": null.value,
        "kernel": repr(kernel),
        "alpha": alpha,
        "method": source.method,
        "n_resamples": source.n_resamples,
        "threshold": value,
        "standard_error": error,
        "notes": list(source.notes),
    }


def _sheet(result: dict[str, Any]) -> str:
    value, error = result["threshold"], result["standard_error"]
    if not math.isfinite(value):
        raise ValueError(
            f"{result['n_resamples']} simulated samples say nothing about alpha = "
            f"{result['alpha']:g}; raise --resamples"
        )
    origin = "the analytic law; nothing simulated"
    if error is not None:
        origin = f"{result['n_resamples']} simulated samples"
    shown = f"{value:.4f}" if error is None else f"{value:.3f} ± {error:.3f}"
    lines = [
        f"points     n = {result['n']}, d = {result['d']}, {_DONE[result['null']]}",
        f"kernel     {result['kernel']}",
        f"from       {origin}",
        f"threshold  {shown}",
        "",
        f"SMMD² of normal points, so treated, exceeds {value:.4g} in {100 * result['alpha']:g} % "
        "of cases.",
        *result["notes"],
    ]
    return "\n".join(lines)
