"""``smmd evaluate``: a trained run on its test set, in numbers and as a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("evaluate")(evaluate)


def evaluate(
    run: Annotated[
        Path, typer.Argument(help="The folder of a run, or of several seeds' runs.", metavar="RUN")
    ],
    report: Annotated[bool, typer.Option(help="Write report.html beside the numbers.")] = True,
    data: Annotated[
        str | None, typer.Option(help="Where the run's folder of images or file is now, if moved.")
    ] = None,
    data_dir: Annotated[
        str | None, typer.Option(help="Where a named data set's published files are now.")
    ] = None,
    device: Annotated[str, typer.Option(help="Where to run the networks: cpu, cuda, ...")] = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """How good is the trained RUN?

    Reconstruction error, how normal the codes of test images are (B-statistic with its band,
    SMMD² of all codes with a p-value, Mardia's moments, each axis, outliers), and how good random
    samples look to a small classifier trained on the same data.

    Writes evaluation.json and report.html into RUN.  For several seeds (a folder of seed-0,
    seed-1, ...) also their mean and spread.
    """
    from smmd.wae import report as reports
    from smmd.wae import spread
    from smmd.wae.ranks import checked_device
    from smmd.wae.run import load_all

    top = run.expanduser()
    runs = load_all(top, device=checked_device(device, "--device "), data=data, data_dir=data_dir)
    several = runs[0].folder != top
    found, text = reports.publish(runs if several else runs[0], top, pages=report)
    if as_json:
        typer.echo(json.dumps(spread.summary(found) if several else found[0].to_json()))
        return
    typer.echo(text)
    if report:
        typer.echo(f"\nSeen in {top / reports.FILE}")
