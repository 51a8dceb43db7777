"""Running items: one after the other, each stored as soon as it is there, then the page.

    OUT/index.html, OUT/README.md       the page, twice
    OUT/figures/ITEM.svg and .png       OUT/tables/TABLE.csv
    OUT/results/ITEM.json               the numbers, with what they were asked for
    OUT/results/ITEM/PART.json          the same for an item whose parts are results of their own
    OUT/results/unfinished/             parts of an item that was interrupted

An item whose stored result was made with the same recipe, seed and sizes is not computed again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from smmd.files import atomic_write
from smmd.paper import page, registry
from smmd.paper.items import Item
from smmd.paper.model import Result, from_json
from smmd.paper.work import Settings, Work

#: Called with the item, what is being done and the share of the item that is done.
Show = Callable[[Item, str, float], None]


def _silent(item: Item, message: str, share: float) -> None:
    """Shows nothing."""


def reproduce(
    out: str | os.PathLike[str],
    items: Sequence[str] | None = None,
    settings: Settings = Settings(),
    show: Show = _silent,
) -> Path:
    """Compute the items (default: all that need no training) and write the page; its path.

    Results that ``out`` already holds are used again where they were asked for in the same way,
    and items that were computed before stay on the page.
    """
    chosen = registry.named(items)
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"out={str(folder)!r} is a file; name a folder")
    failed: dict[str, Exception] = {}
    for item in sorted(chosen, key=lambda item: item.turn):
        if stored(item, folder, settings) is not None:
            show(item, "stored before", 1.0)
            continue
        try:
            _compute(item, folder, settings, show)
        except Exception as error:
            if len(chosen) == 1:
                raise
            failed[item.name] = error  # the others are worth having
            show(item, f"failed: {error}", 1.0)
    path = write_page(folder)
    if failed:
        names, first = ", ".join(failed), next(iter(failed.values()))
        raise RuntimeError(f"{len(failed)} of {len(chosen)} items failed ({names})") from first
    return path


def write_page(out: str | os.PathLike[str]) -> Path:
    """The page of whatever results the folder holds; its path."""
    folder = Path(out)
    page.write(folder, {item: found for item in registry.ITEMS if (found := _load(item, folder))})
    return folder / "index.html"


def stored(item: Item, folder: Path, settings: Settings) -> Result | None:
    """What the folder holds for this request, or None."""
    found = _load(item, folder)
    asked = item.asked(settings)
    return found if found is not None and found.made["key"] == asked["key"] else None


def _compute(item: Item, folder: Path, settings: Settings, show: Show) -> Result:
    asked = item.asked(settings)
    parts = folder / "results" / item.name
    if item.gather is None:
        parts = folder / "results" / "unfinished" / f"{item.name}-{asked['key']}"
    work = Work(item.name, settings, parts, lambda text, share: show(item, text, share), asked)
    start = time.perf_counter()
    show(item, "", 0.0)
    result = item.compute(work)
    if item.gather is None:
        result = replace(result, made=work.made(time.perf_counter() - start, item.needs_training))
        atomic_write(_path(item, folder), result.to_json())
        work.forget_parts()
    show(item, "", 1.0)
    return result


def _path(item: Item, folder: Path) -> Path:
    return folder / "results" / f"{item.name}.json"


def _load(item: Item, folder: Path) -> Result | None:
    """The stored result; one that cannot be read is as good as none."""
    if item.gather is not None:
        return item.gather(folder / "results" / item.name)
    path = _path(item, folder)
    try:
        found = from_json(path.read_text(encoding="utf-8"))
        return found if "key" in found.made else None
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        path.unlink()
        return None
