"""Training from nothing, or from where it stopped, to a kept run: what ``smmd train`` does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import torch

from smmd.wae import checkpoint, graphs, records, watch
from smmd.wae import data as datasets
from smmd.wae.config import Config, choose
from smmd.wae.networks import Custom
from smmd.wae.ranks import Ranks, checked_device
from smmd.wae.run import Run, check_data
from smmd.wae.session import Session


@overload
def fit(data: Any = ..., *, seeds: None = ..., **options: Any) -> Run: ...
@overload
def fit(data: Any = ..., *, seeds: int | Sequence[int], **options: Any) -> list[Run]: ...


def fit(
    data: Any = datasets.SUBSET,
    *,
    out: Any = None,
    preset: str = "quick",
    seeds: int | Sequence[int] | None = None,
    networks: Custom = None,
    device: Any = None,
    resume: bool = False,
    quiet: bool = True,
    watcher: watch.Watcher | None = None,
    **options: Any,
) -> Run | list[Run]:
    """Train a Wasserstein auto-encoder.

    Parameters
    ----------
    data : str, path, array or Dataset
        See ``smmd.wae.data.load``; ``data_dir`` and ``size`` may be given, too.
    out : path, optional
        The run's folder.  Without it nothing is written.
    preset : "quick" or "paper"
        "quick" is for two CPU cores, "paper" is the paper's recipe.
    seeds : int or list of int, optional
        Train so many seeds at once, from ``seed`` on, or these; a list of runs is returned, and
        ``out`` holds their folders ``seed-0``, ``seed-1``, ...
    networks : pair of modules or a function that makes them, optional
        Networks of your own, (encoder, decoder).
    device : device, optional
        By default a GPU if there is one.
    resume : bool
        Continue the run that is in ``out``, with its own options; on a CPU to the same bits.
    quiet : bool
        With False, progress is shown.
    watcher : smmd.wae.watch.Watcher, optional
        Is told of the progress instead.
    **options
        Fields of ``Config``: ``version``, ``network``, ``latent``, ``epochs``, ``batch``,
        ``weight``, ``scale``, ``seed``, ...

    Returns
    -------
    Run, or a list of them if ``seeds`` is given
    """
    if networks is not None:
        options["network"] = "custom"
    name = _source(data)
    if options.get("data_dir") is not None:
        options["data_dir"] = str(Path(options["data_dir"]).expanduser().resolve())
    given = choose(preset, data=name, **options)
    configs = [replace(given, seed=seed) for seed in _seeds(seeds, given.seed)]
    folders: list[Path | None] = [None] * len(configs)
    if out is not None:
        checkpoint.require()
        top = Path(out).expanduser()
        folders = [top if seeds is None else top / f"seed-{c.seed}" for c in configs]
    ranks = Ranks.here()
    before = ranks.decided(lambda: _before(folders, resume))
    if before is not None:
        configs = [Config.from_json(record["config"]) for record in before]
        _same_options(configs, given, options)
        if isinstance(data, str | Path):
            data = configs[0].data
    dataset = datasets.load(data, data_dir=configs[0].data_dir, size=configs[0].size)
    if before is not None:
        for record in before:
            check_data(dataset, record)
    where = _device(device, ranks)
    configs = [replace(config, precision=_precision(config, where)) for config in configs]
    if watcher is None or ranks.rank > 0:
        watcher = watch.choose(quiet or ranks.rank > 0)
    with _threads(configs[0], where), graphs.arithmetic(configs[0].precision):
        session = Session(configs, dataset, folders, where, ranks, networks, watcher)
        if resume and before is None:
            session.notes.append(f"{out} holds no run yet: training starts at its beginning")
        session.open(before)
        runs = session.train()
    return runs[0] if seeds is None else runs


def _source(data: Any) -> str:
    """The data's name, or its absolute path, so that a run finds it from anywhere."""
    if not isinstance(data, str | Path):
        return "array"
    path = Path(data).expanduser()
    return str(path.resolve()) if datasets.is_file(data) else str(data)


def _same_options(configs: list[Config], given: Config, options: dict[str, Any]) -> None:
    """A run is continued with its own options; asking for others is a mistake."""
    for name, value in options.items():
        if value is None or (name == "seed" and len(configs) > 1):
            continue
        for config in configs:
            if (own := getattr(config, name)) != getattr(given, name):
                raise ValueError(
                    f"{name}={value!r}, but the run to be continued has {name}={own!r}: leave the "
                    "option out, or train into another folder"
                )


def _precision(config: Config, device: torch.device) -> str:
    """What "auto" stands for here.

    bf16 where it was compared with tf32 over seeds and made no difference (docs/training.md):
    in the paper's network, whose codes, weights and errors stay float32.
    """
    if config.precision != "auto":
        return config.precision
    if device.type != "cuda":
        return "float32"
    compared = config.network == "paper" and not config.random
    return "bf16" if compared and torch.cuda.get_device_capability(device) >= (8, 0) else "tf32"


def _seeds(seeds: int | Sequence[int] | None, first: int) -> list[int]:
    if seeds is None:
        return [first]
    if isinstance(seeds, int):
        if isinstance(seeds, bool) or seeds < 1:
            raise ValueError(f"seeds must be at least 1, got {seeds!r}")
        return list(range(first, first + seeds))
    chosen = [int(seed) for seed in seeds]
    if not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(f"seeds must be different whole numbers, got {list(seeds)!r}")
    return chosen


def _before(folders: list[Path | None], resume: bool) -> list[dict[str, Any]] | None:
    """What the folders say about the runs that are in them; None if they hold none yet."""
    there = [f for f in folders if f is not None and (f / records.CONFIG).exists()]
    if resume and folders[0] is None:
        raise ValueError("resume=True needs out=, the folder of the run to continue")
    if not there:
        return None
    if not resume:
        raise ValueError(
            f"{there[0]} holds a run already: pass resume=True (--resume) to continue it, or "
            "another folder"
        )
    if len(there) < len(folders):
        # Killed while the folders were made: nothing was trained yet.
        return None
    return [records.read_config(f) for f in there]


def _device(device: Any, ranks: Ranks) -> torch.device:
    if device is not None:
        return checked_device(device, "device=")
    if torch.cuda.is_available():
        return torch.device("cuda", ranks.rank % torch.cuda.device_count())
    return torch.device("cpu")


@contextmanager
def _threads(config: Config, device: torch.device) -> Iterator[None]:
    """As many threads as the options say, since their number decides the last bits."""
    before = torch.get_num_threads()
    if device.type == "cpu" and config.threads is not None:
        torch.set_num_threads(config.threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
