"""``smmd sample``: images out of a trained run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("sample")(sample)


def sample(
    run: Annotated[Path, typer.Argument(help="The folder of a run.", metavar="RUN")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="A .png file for all images side by side, an .npy file for the array, or a "
            "folder for one PNG each.  Default samples.png in RUN.",
        ),
    ] = None,
    n: Annotated[int, typer.Option("-n", "--n", help="How many images.", min=1)] = 100,
    seed: Annotated[int, typer.Option(help="Of the random codes.", min=0)] = 0,
    interpolate: Annotated[
        int | None,
        typer.Option(
            help="Ways between random pairs of codes instead, of so many steps; N images in all.",
            min=2,
        ),
    ] = None,
    slice_: Annotated[
        bool,
        typer.Option(
            "--slice", help="A random plane through the origin instead (paper, figure c)."
        ),
    ] = False,
    reach: Annotated[
        float, typer.Option(help="Half the width of the slice, in standard deviations.")
    ] = 2.5,
    device: Annotated[str, typer.Option(help="Where to run the decoder: cpu, cuda, ...")] = "cpu",
) -> None:
    """Write images decoded from random codes, from ways between them, or from a slice.

    The same RUN, --n and --seed give the same images.
    """
    from smmd.wae import sample as samples
    from smmd.wae.ranks import checked_device
    from smmd.wae.run import load

    if slice_ and interpolate is not None:
        raise ValueError("--slice and --interpolate exclude each other; give one")
    if not 0.0 < reach < 100.0:
        raise ValueError(f"--reach must be positive and below 100, got {reach:g}")
    path = (out or run / "samples.png").expanduser()
    samples.check_target(path)
    trained = load(run, device=checked_device(device, "--device "))
    d = trained.config.latent
    if slice_:
        codes, columns = samples.slice_of(n, d, reach, seed)
    elif interpolate is not None:
        codes, columns = samples.ways(n, interpolate, d, seed)
    else:
        codes, columns = samples.draws(n, d, seed), None
    written = samples.write(path, trained.decode(codes), columns)
    typer.echo(f"{len(codes)} images in {written}")
