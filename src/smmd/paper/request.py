"""What a user asks for, and what is told while it is computed; for both command lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from smmd.paper import registry, wae
from smmd.paper.items import Item
from smmd.paper.runner import reproduce, write_page
from smmd.paper.work import FULL, QUICK, Settings, device

#: Where results go if the user does not say.
FOLDER = "reproduction"


def settings(
    *,
    full: bool = False,
    seed: int = 0,
    data: str | None = None,
    data_dir: str | None = None,
    on: str | None = None,
    wae_seeds: int | None = None,
    wae_epochs: int | None = None,
) -> Settings:
    """The settings of a run; the full one on a GPU, or with a folder of data, uses all of MNIST."""
    if data is None:
        whole = data_dir is not None or (full and device(on) != "cpu")
        data = "mnist" if whole else "mnist-subset"
    sizes = FULL if full else QUICK
    if wae_seeds is not None:
        sizes = replace(sizes, waes=wae_seeds)
    if wae_epochs is not None:
        sizes = replace(sizes, wae_epochs=wae_epochs)
    return Settings(seed, sizes, data, data_dir, on)


def chosen(items: Sequence[str] | None, full: bool, training: bool | None) -> list[str]:
    """Names of items: those asked for, or all; a quick run leaves out those that train."""
    if items:
        return [item.name for item in registry.named(items)]
    wanted = full if training is None else training
    return [item.name for item in registry.ITEMS if wanted or not item.needs_training]


def listing() -> Iterator[str]:
    """A line for each item."""
    width = max(len(item.name) for item in registry.ITEMS)
    for item in registry.ITEMS:
        remark = "  (trains)" if item.needs_training else ""
        yield f"{item.name:{width}}  {item.place}{remark}"


def run(out: str, items: Sequence[str], asked: Settings, stream: TextIO | None = None) -> Path:
    """Compute and tell (by default on stderr); the page's path."""
    teller = Teller(stream or sys.stderr, len(items))
    try:
        path = reproduce(out, items, asked, teller.show)
    except KeyboardInterrupt:
        teller.say("interrupted: the same command goes on where it was")
        raise
    teller.say(f"{time.monotonic() - teller.start:.1f} s in all")
    return path


def page_only(out: str) -> Path:
    """The page of what the folder holds, nothing computed."""
    if not (Path(out) / "results").is_dir():
        raise ValueError(f"out={out!r} holds no results to write a page of; compute some first")
    return write_page(out)


def adopt(out: str, folder: str) -> Path:
    """The runs of ``smmd train --out FOLDER``, measured as their version's part of item "wae"."""
    from smmd.wae import load_all

    wae.adopt(Path(out) / "results" / wae.ITEM.name, load_all(folder))
    return write_page(out)


class Teller:
    """On a terminal one line that changes, elsewhere a line for each item."""

    def __init__(self, stream: TextIO, items: int) -> None:
        self.stream, self.items, self.done = stream, items, 0
        self.start = self.began = time.monotonic()
        self.live = stream.isatty()

    def show(self, item: Item, message: str, share: float) -> None:
        """Called by the runner."""
        if share == 0.0 and not message:
            self.began = time.monotonic()
        if share >= 1.0:
            self.done += 1
            words = message or f"{time.monotonic() - self.began:.1f} s"
            self._line(f"[{self.done}/{self.items}] {item.name}: {words}", True)
        elif self.live:
            words = f", {message}" if message else ""
            self._line(f"[{self.done + 1}/{self.items}] {item.name}: {share:4.0%}{words}", False)

    def say(self, text: str) -> None:
        """A line of its own."""
        self._line(text, True)

    def _line(self, text: str, last: bool) -> None:
        if self.live:
            self.stream.write(f"\r{text[:100]:100}" + ("\n" if last else ""))
        else:
            self.stream.write(text + "\n")
        self.stream.flush()
