"""The explorer: pick two latent axes, drag across their plane, and the decoder's image follows.

The decoder itself stays outside the page.  Its images on a regular grid of each plane are packed
into one JPEG a plane, and the script (``explorer.js``) blends the four nearest.  So any decoder
will do, of any size, and the page stays small.
"""

from __future__ import annotations

import base64
import io
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np

from smmd.wae import images, sample
from smmd.wae.data import Dataset
from smmd.wae.evaluation import Trained
from smmd.wae.report import labels

#: Half the width of a plane, in standard deviations.
REACH = 3.0
#: Planes are drawn for at most this many axes, those that change the image most.
MOST_AXES = 8
#: (starting points, grid side), from the richest page to the poorest.
PLANS = ((4, 11), (2, 11), (1, 11), (1, 9), (1, 7), (1, 5))
#: Characters of image data in the page, and numbers that the decoder may have to put out for it.
MOST_TEXT, MOST_NUMBERS = 4_500_000, 20_000_000
#: Larger images are shrunk to this side; JPEG works in blocks of 8 pixels.
LARGEST_SIDE, BLOCK, QUALITY = 96, 8, 82
#: Test codes shown as dots.
MOST_DOTS = 400


@dataclass(frozen=True)
class Plan:
    """What goes into the page: ``dropped`` axes do not."""

    axes: tuple[int, ...]
    starts: int
    grid: int
    dropped: int


@dataclass(frozen=True)
class Explorer:
    """A fragment of HTML, its style and its script."""

    html: str
    style: str
    script: str
    plan: Plan


@dataclass(frozen=True)
class Start:
    """A code that planes are laid through."""

    name: str
    code: np.ndarray


def build(run: Trained, data: Dataset, codes: np.ndarray, influence: np.ndarray) -> Explorer:
    """The explorer of a run; ``codes`` are those of the test images, ``influence`` (d,) says how
    much each axis changes the image."""
    starts = _starts(data, codes)
    plan = _plan(run, influence, starts)
    starts = starts[: plan.starts]
    pairs = _pairs(plan.axes)
    sheets = {
        f"{k}:{a}-{b}": _uri(_sheet(run, start.code, (a, b), plan.grid))
        for k, start in enumerate(starts)
        for a, b in pairs
    }
    shown = _thinned(len(codes), MOST_DOTS)
    picture = _shrunk(run.decode(starts[0].code[None]))
    payload = {
        "axes": list(plan.axes),
        "first": _strongest(influence[list(plan.axes)]),
        "grid": plan.grid,
        "reach": REACH,
        "size": list(picture.shape[1:3]),
        "tile": list(_padded(picture).shape[1:3]),
        "starts": [
            {"name": start.name, "code": _rounded(start.code[list(plan.axes)])} for start in starts
        ],
        "sheets": sheets,
        "dots": [_rounded(row) for row in codes[shown][:, list(plan.axes)]],
        "dotColours": labels.colour_indices(data, shown),
        "palette": list(labels.PALETTE),
    }
    text = json.dumps(payload, separators=(",", ":")).replace("<", "\\u003c")
    here = resources.files("smmd.wae.report")
    fragment = (here / "explorer.html").read_text(encoding="utf-8")
    return Explorer(
        html=fragment + f'<script type="application/json" id="ex-data">{text}</script>',
        style=(here / "explorer.css").read_text(encoding="utf-8"),
        script=(here / "explorer.js").read_text(encoding="utf-8"),
        plan=plan,
    )


def _starts(data: Dataset, codes: np.ndarray) -> list[Start]:
    """The origin, and the codes of three test images of different classes where there are any."""
    starts = [Start("the origin", np.zeros(codes.shape[1]))]
    if data.test_labels is None:
        rows = range(min(3, len(codes)))
        return starts + [Start(f"test image {k}", codes[k].astype(np.float64)) for k in rows]
    present = np.unique(data.test_labels)
    chosen = present[np.linspace(0, len(present) - 1, min(3, len(present))).astype(int)]
    for label in dict.fromkeys(chosen.tolist()):
        members = np.flatnonzero(data.test_labels == label)
        # The member nearest to the typical distance from the origin: neither odd nor bland.
        distances = np.linalg.norm(codes[members], axis=1)
        typical = members[np.argmin(np.abs(distances - np.sqrt(codes.shape[1])))]
        name = f"a test image of {labels.name_of(data, int(label))}"
        starts.append(Start(name, codes[typical].astype(np.float64)))
    return starts


def _plan(run: Trained, influence: np.ndarray, starts: Sequence[Start]) -> Plan:
    """The richest plan whose images fit, by the size of one plane's sheet."""
    order = np.argsort(-influence, kind="stable")
    d = len(influence)
    strongest = tuple(sorted(int(k) for k in order[: min(d, 2)]))
    trial = _pairs(strongest)[0]
    first = _sheet(run, starts[0].code, trial, 5)
    text = len(_uri(first)) / 5 ** (1 if d == 1 else 2)
    numbers = int(np.prod(run.decode(starts[0].code[None]).shape))
    for count in range(min(d, MOST_AXES), 0, -1):
        for sources, grid in PLANS:
            tiles = max(1, count * (count - 1) // 2) * grid ** (1 if d == 1 else 2)
            sources = min(sources, len(starts))
            if sources * tiles * text <= MOST_TEXT and sources * tiles * numbers <= MOST_NUMBERS:
                axes = tuple(sorted(int(k) for k in order[:count]))
                return Plan(axes, sources, grid, d - count)
    return Plan(strongest, 1, PLANS[-1][1], d - len(strongest))


def _pairs(axes: Sequence[int]) -> list[tuple[int, int]]:
    """Planes of two axes; a single axis makes a line, written as its pair with itself."""
    return list(itertools.combinations(axes, 2)) if len(axes) > 1 else [(axes[0], axes[0])]


def _sheet(run: Trained, start: np.ndarray, pair: tuple[int, int], grid: int) -> np.ndarray:
    """The plane's images side by side: axis a to the right, axis b downwards from −reach."""
    a, b = pair
    ticks = np.linspace(-REACH, REACH, grid)
    rows = 1 if a == b else grid
    codes = np.tile(start, (rows, grid, 1))
    if a != b:
        codes[:, :, b] = ticks[:, None]
    codes[:, :, a] = ticks[None, :]
    small = _padded(_shrunk(run.decode(codes.reshape(rows * grid, -1))))
    height, width, channels = small.shape[1:]
    tiles = small.reshape(rows, grid, height, width, channels)
    return tiles.transpose(0, 2, 1, 3, 4).reshape(rows * height, grid * width, channels)


def _shrunk(pictures: np.ndarray) -> np.ndarray:
    """Images (n, c, h, w) as bytes (n, h, w, 1 or 3), no side longer than the page needs."""
    small = images.to_bytes(pictures)
    height, width = small.shape[1:3]
    if max(height, width) <= LARGEST_SIDE:
        return small
    scale = LARGEST_SIDE / max(height, width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    pillow = images.pillow()
    flat = small[..., 0] if small.shape[-1] == 1 else small
    resized = [np.asarray(pillow.fromarray(one).resize(size)) for one in flat]
    return np.stack(resized).reshape(len(small), size[1], size[0], small.shape[-1])


def _padded(small: np.ndarray) -> np.ndarray:
    """Each image filled up to whole JPEG blocks with its own edge, so that none colours its
    neighbour."""
    down, right = (-side % BLOCK for side in small.shape[1:3])
    return np.pad(small, ((0, 0), (0, down), (0, right), (0, 0)), mode="edge")


def _uri(sheet: np.ndarray) -> str:
    stream = io.BytesIO()
    picture = images.pillow().fromarray(sheet[..., 0] if sheet.shape[-1] == 1 else sheet)
    options: dict[str, Any] = {"quality": QUALITY, "optimize": True}
    if sheet.shape[-1] == 3:
        options["subsampling"] = 0
    picture.save(stream, "JPEG", **options)
    return "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode()


def _strongest(influence: np.ndarray) -> list[int]:
    """Places of the two axes that a visitor sees first."""
    order = np.argsort(-influence, kind="stable")
    return sorted(int(k) for k in (order[0], order[min(1, len(order) - 1)]))


def _rounded(code: np.ndarray) -> list[float]:
    return [round(float(value), 2) for value in code]


def _thinned(n: int, most: int) -> np.ndarray:
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(int)


def influence_of(run: Trained, d: int, steps: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """How much each axis changes the image, as the standard deviation of pixels along it, and the
    images along each axis (d, steps, c, h, w)."""
    spread, rows = np.empty(d), []
    for axis in range(d):
        pictures = run.decode(sample.along_axes(np.array([axis]), d, steps))
        spread[axis] = float(np.sqrt(np.mean(np.var(pictures, axis=0))))
        rows.append(pictures)
    return spread, np.stack(rows)
