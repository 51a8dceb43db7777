"""``smmd test``: are the rows of a file a sample from a normal law?"""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from smmd.cli import options, tables
from smmd.cli.measure import NanPolicy


class NullName(StrEnum):
    """What is taken as unknown."""

    NORMAL = "normal"
    DIAGONAL = "diagonal"
    STANDARD = "standard"


class StatisticName(StrEnum):
    """The statistics of ``normality_test``."""

    SMMD = "smmd"
    BHEP = "bhep"
    HENZE_ZIRKLER = "henze-zirkler"
    MARDIA_SKEWNESS = "mardia-skewness"
    MARDIA_KURTOSIS = "mardia-kurtosis"


class Method(StrEnum):
    """Where p-values come from."""

    ANALYTIC = "analytic"
    MONTE_CARLO = "monte-carlo"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("test")(tell)


def tell(
    file: Annotated[
        Path | None,
        typer.Argument(help="CSV, TSV, Parquet, NPY or NPZ; without it, a shipped data set."),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Names or indices, separated by commas; default all numeric.")
    ] = None,
    null: Annotated[NullName, typer.Option(help="What is tested.")] = NullName.NORMAL,
    statistic: Annotated[StatisticName, typer.Option(help="How.")] = StatisticName.SMMD,
    kernel: Annotated[
        options.KernelName, typer.Option(help=options.KERNEL_HELP)
    ] = options.KernelName.GAUSSIAN,
    scale: Annotated[str | None, typer.Option(help=options.SCALE_HELP)] = None,
    gamma: Annotated[float | None, typer.Option(help=options.GAMMA_HELP)] = None,
    method: Annotated[Method, typer.Option(help="Where p-values come from.")] = Method.ANALYTIC,
    alpha: Annotated[float, typer.Option(help="The level of the verdict.")] = 0.05,
    nan_policy: Annotated[
        NanPolicy, typer.Option(help="Rows with missing values: refuse or omit.")
    ] = NanPolicy.RAISE,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Are the rows of FILE a sample from a multivariate normal law?"""
    import warnings

    from smmd.normality import TiesWarning, normality_test

    chosen = options.kernel_of(kernel, scale, gamma)
    source = tables.read(file, columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TiesWarning)  # the result's notes say the same
        result = normality_test(
            source.table, null.value, statistic=statistic.value, kernel=chosen,
            method=method.value, alpha=alpha, nan_policy=nan_policy.value,
        )  # fmt: skip
    typer.echo(json.dumps(result.to_dict()) if as_json else str(result))
