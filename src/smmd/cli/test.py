"""``smmd test``: are the rows of a file a sample from a normal law?"""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from smmd.cli import options, tables

#: Exit status for --fail-if-rejected.
REJECTED = 3


class StatisticName(StrEnum):
    """The statistics of ``normality_test``."""

    SMMD = "smmd"
    BHEP = "bhep"
    HENZE_ZIRKLER = "henze-zirkler"
    MARDIA_SKEWNESS = "mardia-skewness"
    MARDIA_KURTOSIS = "mardia-kurtosis"


class RankDeficient(StrEnum):
    """What to do with a singular covariance matrix."""

    RAISE = "raise"
    PROJECT = "project"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("test")(tell)


@dataclass(frozen=True)
class _Asked:
    """The arguments of ``normality_test`` that are the same for every group."""

    null: str
    statistic: str
    kernel: Any
    method: str
    alpha: float
    nan_policy: str
    rank_deficient: str
    n_resamples: int | None
    rng: int | None


def tell(
    file: options.File = None,
    columns: options.Columns = None,
    group_by: Annotated[
        str | None, typer.Option(help="Test the groups of this column one by one.")
    ] = None,
    null: Annotated[
        options.NullName,
        typer.Option(
            help="normal: mean and covariance unknown; diagonal: independent columns, means and "
            "variances unknown; standard: N(0, I) exactly."
        ),
    ] = options.NullName.NORMAL,
    statistic: Annotated[StatisticName, typer.Option(help="What to test by.")] = StatisticName.SMMD,
    kernel: options.KernelChoice = options.KernelName.GAUSSIAN,
    scale: options.Scale = None,
    gamma: options.Gamma = None,
    method: Annotated[
        options.Method,
        typer.Option(help="Where p-values come from; analytic simulates where it must."),
    ] = options.Method.ANALYTIC,
    alpha: Annotated[float, typer.Option(help="The level of the verdict.")] = 0.05,
    nan_policy: options.MissingRows = options.NanPolicy.RAISE,
    rank_deficient: Annotated[
        RankDeficient,
        typer.Option(help="Singular covariance: refuse, or test within the span of the data."),
    ] = RankDeficient.RAISE,
    resamples: Annotated[int | None, typer.Option(help="Simulated samples, if any.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the simulation; otherwise fixed.")] = None,
    diagnose: Annotated[
        bool, typer.Option("--diagnose", help="Also say which columns, directions and rows.")
    ] = False,
    report: Annotated[
        Path | None, typer.Option(help="Write one HTML file with figures and the diagnosis.")
    ] = None,
    fail_if_rejected: Annotated[
        bool, typer.Option("--fail-if-rejected", help="Exit with status 3 if rejected.")
    ] = False,
    as_json: options.AsJson = False,
) -> int:
    """Are the rows of FILE a sample from a multivariate normal law?

    The exit status is 0 whatever the verdict, unless --fail-if-rejected is given.  With --group-by
    p-values are adjusted for the number of groups (Holm).
    """
    asked = _Asked(
        null.value, statistic.value, options.kernel_of(kernel, scale, gamma), method.value, alpha,
        nan_policy.value, rank_deficient.value, resamples, seed,
    )  # fmt: skip
    if report is not None and report.is_dir():
        raise ValueError(f"--report {report} is a folder; name a file such as report.html")
    source = tables.read(file, columns, group_by)
    try:
        found, skipped = _tested(source, asked, diagnose or report is not None)
    except (ValueError, TypeError) as error:
        raise type(error)(_in_options(str(error))) from error
    if report is not None:
        from smmd.report import normality as pages

        pages.page(source.name, found, group_by=group_by or "", skipped=skipped).write(report)
    if as_json:
        typer.echo(json.dumps(_plain(source, found, skipped, group_by, diagnose)))
    else:
        typer.echo(_text(source, found, skipped, group_by, diagnose))
        if report is not None:
            typer.echo(f"\nThe report is in {report}")
    rejected = any(part.rejected for part in found)
    return REJECTED if fail_if_rejected and rejected else 0


def _in_options(message: str) -> str:
    """The same advice, with this command's options for the function's arguments."""
    for argument in ("nan_policy", "rank_deficient", "null", "statistic", "method"):
        option = "--" + argument.replace("_", "-")
        message = re.sub(rf"\b{argument}='([\w-]+)'", rf"{option} \1", message)
    return message


def _tested(source: tables.File, asked: _Asked, closely: bool) -> tuple[list[Any], list[str]]:
    """The parts of the report, and why groups are not among them."""
    from smmd.normality.multiplicity import holm

    if source.groups is None:
        return [_part("", source.table, asked, closely, source.name)], []
    found, skipped = [], []
    for label in sorted(set(source.groups.tolist())):
        member = source.groups == label
        table = replace(source.table, values=source.table.values[member], source=None)
        try:
            found.append(_part(label, table, asked, closely, f"group {label!r}"))
        except ValueError as error:
            skipped.append(f"Not tested: {_in_options(str(error))}.")
    if not found:
        raise ValueError(f"no group could be tested: {skipped[0].removeprefix('Not tested: ')}")
    adjusted = holm([part.result.pvalue for part in found])
    return [replace(part, adjusted=p) for part, p in zip(found, adjusted, strict=True)], skipped


def _part(name: str, table: Any, asked: _Asked, closely: bool, called: str) -> Any:
    from smmd.normality import TiesWarning, diagnosis, statistics, testing
    from smmd.normality.prepare import prepare
    from smmd.nulls import montecarlo
    from smmd.report.normality import Part

    alpha = testing.check_alpha(asked.alpha)
    chosen = statistics.find(asked.statistic, asked.null, asked.kernel)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TiesWarning)  # the notes of the result say the same
        prepared = prepare(
            table, asked.null, nan_policy=asked.nan_policy, rank_deficient=asked.rank_deficient,
            name=called,
        )  # fmt: skip
        settings: dict[str, Any] = {"method": asked.method, "alpha": alpha}
        result = testing.judged(
            prepared, asked.null, chosen, asked.kernel, rng=asked.rng,
            n_resamples=asked.n_resamples, **settings,
        )  # fmt: skip
        if not closely:
            return Part(name, result, None)
        overall = result
        if asked.statistic != "smmd":
            smmd = statistics.STATISTICS["smmd"]
            overall = testing.judged(prepared, asked.null, smmd, asked.kernel, **settings)
        diagnosed = diagnosis.explained(
            prepared, overall, asked.kernel, method=asked.method, n_directions=3, n_rows=5,
            max_rows=diagnosis.MOST_ROWS, rng=montecarlo.generator(asked.rng),
        )  # fmt: skip
    return Part(name, result, diagnosed)


def _plain(
    source: tables.File, found: list[Any], skipped: list[str], group_by: str | None, diagnose: bool
) -> dict[str, Any]:
    head: dict[str, Any] = {"file": source.name, "columns_left_out": list(source.left_out)}
    made = []
    for part in found:
        plain = part.result.to_dict()
        if diagnose:
            plain["diagnosis"] = part.diagnosis.to_dict()
        if group_by is not None:
            plain = {
                "group": part.name, **plain, "pvalue_adjusted": part.adjusted,
                "rejected": part.rejected,
            }  # fmt: skip
        made.append(plain)
    if group_by is None:
        return {**head, **made[0]}
    return {**head, "group_by": group_by, "groups": made, "skipped": skipped}


def _text(
    source: tables.File, found: list[Any], skipped: list[str], group_by: str | None, diagnose: bool
) -> str:
    from smmd.normality import words

    head = [source.name]
    if source.left_out:
        head.append(f"Left out as not numeric: {', '.join(source.left_out)}.")
    if group_by is None:
        part = found[0]
        blocks = [*head, "", str(part.result)]
        if diagnose:
            blocks.append("\n" + str(part.diagnosis))
        return "\n".join(blocks)
    alpha = words.percent(found[0].result.alpha)
    rejected = sum(part.rejected for part in found)
    rows = [[group_by, "rows", found[0].result.label, "p", "p adjusted", ""]]
    for part in found:
        r = part.result
        rows.append(
            [part.name, words.count(r.n), words.number(r.statistic), words.p_short(r.pvalue),
             words.p_short(part.adjusted), "rejected" if part.rejected else ""]
        )  # fmt: skip
    blocks = [
        *head,
        "",
        f"{found[0].result.d} columns, in {len(found)} groups by {group_by}",
        "",
        words.grid(rows),
        "",
        f"Normality is rejected in {rejected or 'none'} of {len(found)} groups at the {alpha} "
        "level (p adjusted by Holm).",
        *skipped,
    ]
    if diagnose:
        for part in found:
            blocks += ["", f"{group_by} = {part.name}", str(part.diagnosis)]
    return "\n".join(blocks)
