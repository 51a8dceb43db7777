"""``smmd reproduce``: the paper's tables and figures, computed again."""

from __future__ import annotations

from typing import Annotated

import typer

from smmd.paper import request


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("reproduce")(reproduce)


def reproduce(
    out: Annotated[str, typer.Option(help="Folder of the page, tables and figures.")] = (
        request.FOLDER
    ),
    full: Annotated[
        bool,
        typer.Option("--full", help="All items at full size, training included: wants a GPU."),
    ] = False,
    item: Annotated[
        list[str] | None, typer.Option(help="Only this item; may be given several times.")
    ] = None,
    training: Annotated[
        bool | None,
        typer.Option("--training/--no-training", help="With or without the items that train."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of all random numbers.")] = 0,
    data: Annotated[
        str | None, typer.Option(help="What auto-encoders learn from; default MNIST's digits.")
    ] = None,
    data_dir: Annotated[
        str | None, typer.Option(help="Folder with the data set's published files.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; default a GPU if any.")] = None,
    wae_seeds: Annotated[
        int | None, typer.Option(help="Train so many WAEs of each version.")
    ] = None,
    wae_epochs: Annotated[
        int | None,
        typer.Option(help="Train the WAEs for so many epochs (adaptive ones for a third more)."),
    ] = None,
    runs: Annotated[
        str | None,
        typer.Option(help="Folder of runs of smmd train: measure them instead of training."),
    ] = None,
    list_items: Annotated[bool, typer.Option("--list", help="Name the items and stop.")] = False,
    page_only: Annotated[
        bool, typer.Option("--page-only", help="Write the page of the stored results again.")
    ] = False,
) -> None:
    """Compute the paper's tables and figures again, beside the printed numbers.

    Without options everything that needs no training, in a few minutes.  What was computed before
    in the same folder, with the same seed and sizes, is not computed again, so that an interrupted
    run goes on where it was.
    """
    if list_items:
        typer.echo("\n".join(request.listing()))
        return
    if page_only:
        typer.echo(request.page_only(out))
        return
    if runs:
        typer.echo(request.adopt(out, runs))
        return
    settings = request.settings(
        full=full,
        seed=seed,
        data=data,
        data_dir=data_dir,
        on=device,
        wae_seeds=wae_seeds,
        wae_epochs=wae_epochs,
    )
    names = request.chosen(item, full, training)
    try:
        typer.echo(request.run(out, names, settings))
    except (
        ArithmeticError,
        RuntimeError,
    ) as error:  # training diverged, a GPU is full
        typer.echo(f"smmd: error: {error}", err=True)
        raise typer.Exit(1) from None
