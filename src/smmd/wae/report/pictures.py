"""Images on the page: sheets of them, and the codes they are decoded from."""

from __future__ import annotations

import base64
import html

import numpy as np

from smmd.wae import images, sample
from smmd.wae.data import Dataset
from smmd.wae.evaluation import Evaluation, Trained
from smmd.wae.report import labels

#: A sheet's width in pixels that images are laid out for, and the most of them in a row.
SHEET, MOST_COLUMNS = 480, 10
#: Axes whose images are shown, and steps along each.
MOST_AXES, STEPS = 16, 11


def columns_of(data: Dataset) -> int:
    """Images in a row of a sheet."""
    return int(np.clip(SHEET // data.shape[2], 4, MOST_COLUMNS))


def reconstructions(run: Trained, data: Dataset) -> str:
    """Test images in the odd rows, what the decoder makes of their codes below them."""
    columns = columns_of(data)
    rows = max(1, min(columns // 2, len(data.test) // columns))
    count = min(rows * columns, len(data.test))
    chosen = np.sort(np.random.default_rng(0).permutation(len(data.test))[:count])
    real = data.test[chosen]
    back = images.to_bytes(run.decode(run.encode(real)))
    real = images.to_bytes(real)
    pairs = np.zeros((2 * rows, columns, *real.shape[1:]), np.uint8)
    for k in range(count):
        pairs[2 * (k // columns), k % columns] = real[k]
        pairs[2 * (k // columns) + 1, k % columns] = back[k]
    flat = np.moveaxis(pairs.reshape(-1, *real.shape[1:]), -1, 1)
    return picture(images.tile(flat, columns), "Test images and their reconstructions")


def random_samples(run: Trained, data: Dataset, d: int) -> str:
    """Decoded draws from N(0, I)."""
    columns = columns_of(data)
    codes = sample.draws(columns * columns, d, seed=1)
    return picture(images.tile(run.decode(codes), columns), "Images decoded from random codes")


def planar_slice(run: Trained, data: Dataset, d: int) -> str:
    """Decoded codes of a plane through the origin."""
    columns = columns_of(data)
    codes = sample.plane_slice(d, columns if d > 1 else columns**2)
    return picture(images.tile(run.decode(codes), columns), "Images of a slice of the code space")


def along_axes(walks: np.ndarray, influence: np.ndarray) -> str:
    """A row of images for each axis, those that change the image most if there are many."""
    d = len(influence)
    chosen = np.sort(np.argsort(-influence, kind="stable")[:MOST_AXES])
    lines = []
    for k in chosen:
        strip = picture(images.tile(walks[k], walks.shape[1]), f"Images along axis {k + 1}")
        lines.append(
            f"<tr><th scope='row'>z<sub>{k + 1}</sub></th><td>{strip}</td>"
            f"<td class=number>{influence[k]:.3f}</td></tr>"
        )
    of = f" {len(chosen)} of {d} axes, those that change the image most." if len(chosen) < d else ""
    return (
        "<div class=scroll><table class=walks><caption>From −3 to 3 standard deviations along each"
        f" axis, the others at 0.{of}</caption><thead><tr><th>axis</th><th></th>"
        f"<th class=number>change</th></tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def outliers(run: Trained, data: Dataset, evaluation: Evaluation, most: int = 10) -> str:
    """The test images whose codes lie furthest out, above their reconstructions."""
    cells = []
    for one in evaluation.outliers[:most]:
        real = data.test[one.index : one.index + 1]
        back = images.to_bytes(run.decode(run.encode(real)))
        both = np.concatenate([images.to_bytes(real), back])
        sheet = images.tile(np.moveaxis(both, -1, 1), 1)
        words = f"distance {one.radius:.1f}"
        if data.test_labels is not None:
            words = f"{labels.name_of(data, int(data.test_labels[one.index]))}: {words}"
        cells.append(
            f"<figure>{picture(sheet, f'Test image {one.index} and its reconstruction')}"
            f"<figcaption>{html.escape(words)}</figcaption></figure>"
        )
    return f"<div class=strip>{''.join(cells)}</div>"


def picture(sheet: np.ndarray, alt: str) -> str:
    """An ``img`` element that holds its own data: PNG for grey images, JPEG for colour."""
    grey = sheet.shape[-1] == 1
    data = images.encode(sheet, "PNG" if grey else "JPEG", 90)
    kind = "png" if grey else "jpeg"
    text = base64.b64encode(data).decode()
    return (
        f'<img alt="{html.escape(alt, quote=True)}" width={sheet.shape[1]} height={sheet.shape[0]}'
        f' src="data:image/{kind};base64,{text}">'
    )
