"""``smmd train``: from images to a generative model with a normal latent space."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from smmd.errors import MissingExtra


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("train")(train)


def train(
    data: Annotated[
        str,
        typer.Option(
            help="mnist-subset (shipped), mnist, fashion-mnist, cifar10 (downloaded once), a "
            "folder of images, or an NPY or NPZ file."
        ),
    ] = "mnist-subset",
    data_dir: Annotated[
        str | None, typer.Option(help="Where a named data set's published files lie already.")
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="For a folder: bring images to this side.")
    ] = None,
    preset: Annotated[
        str, typer.Option(help="quick (two CPU cores, a minute or two) or paper (its recipe).")
    ] = "quick",
    version: Annotated[
        str | None, typer.Option(help="code-norm, adaptive-bn, adaptive-plain or random.")
    ] = None,
    network: Annotated[
        str | None, typer.Option(help="paper, quick, or residual (colour, up to 64×64).")
    ] = None,
    latent: Annotated[int | None, typer.Option(help="Latent dimensions; default 8.")] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Stretch or shrink the schedule to so many epochs.")
    ] = None,
    batch: Annotated[int | None, typer.Option(help="Images in a batch; default 100.")] = None,
    weight: Annotated[
        float | None, typer.Option(help="λ, the penalty's weight; default 0.01.")
    ] = None,
    scale: Annotated[float | None, typer.Option(help="Kernel scale s; default 1/8.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of weights and order; default 0.")] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Train so many seeds at once, each in its own folder.")
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(help="On a GPU: float32, tf32 or bf16; default where tested bf16, else tf32."),
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, ...")] = None,
    threads: Annotated[
        int | None, typer.Option(help="CPU threads; part of the recipe, see the documentation.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The run's folder; default runs/DATA-VERSION.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in --out, with its own options.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show nothing while training.")] = False,
    report: Annotated[
        bool, typer.Option(help="Evaluate the run at the end and write report.html.")
    ] = True,
) -> None:
    """Train a Wasserstein auto-encoder whose codes are normal.

    Everything is kept in the run's folder, epoch by epoch.  On several GPUs or machines start it
    with torchrun: torchrun --nproc-per-node 2 -m smmd train --out runs/two
    """
    _torch()
    from smmd.wae import fit

    options: dict[str, Any] = {
        "data_dir": data_dir,
        "size": size,
        "version": version,
        "network": network,
        "latent": latent,
        "epochs": epochs,
        "batch": batch,
        "weight": weight,
        "scale": scale,
        "seed": seed,
        "precision": precision,
        "threads": threads,
    }
    if resume and out is None:
        raise ValueError("--resume needs --out, the folder of the run to continue")
    group = _join(device)
    try:
        folder = out or _unused(Path("runs"), f"{Path(data).stem}-{version or 'code-norm'}")
        if group and out is None:
            raise ValueError("several processes need --out, so that all mean the same folder")
        try:
            runs = fit(
                data,
                out=folder,
                preset=preset,
                seeds=seeds,
                device=device,
                resume=resume,
                quiet=quiet,
                **options,
            )
        except KeyboardInterrupt:
            typer.echo(f"stopped; to continue: smmd train --out {folder} --resume", err=True)
            raise
    finally:
        if group:
            import torch

            torch.distributed.destroy_process_group()
    if group and int(os.environ["RANK"]) > 0:
        return
    typer.echo(f"kept in {folder}")
    if report:
        from smmd.wae import report as reports

        typer.echo(f"\n{reports.publish(runs, folder.expanduser())[1]}")
        typer.echo(f"\nSeen in {folder / reports.FILE}")


def _torch() -> None:
    try:
        import torch  # noqa: F401
    except ImportError:
        raise MissingExtra("smmd train", "train", "torch") from None


def _unused(parent: Path, name: str) -> Path:
    """A folder that does not exist yet: name, name-2, name-3, ..."""
    number, folder = 1, parent / name
    while folder.exists():
        number += 1
        folder = parent / f"{name}-{number}"
    return folder


def _join(device: str | None) -> bool:
    """Join the other processes if torchrun started this one among several."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        return False
    import torch

    on_gpu = torch.cuda.is_available() and device != "cpu"
    if on_gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    torch.distributed.init_process_group("nccl" if on_gpu else "gloo")
    return True
