"""Pictures of any kind as one array: folders of files, arrays in either axis order, PNG output."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from smmd.errors import MissingExtra

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm"}

#: Images of one size up to this are taken as they are; others are brought to this side.
LARGEST_KEPT, DEFAULT_SIDE = 64, 32


def as_images(array: np.ndarray, name: str) -> np.ndarray:
    """(n, h, w), (n, h, w, c) or (n, c, h, w) as (n, c, h, w); uint8, or float32 in 0…1."""
    array = np.asarray(array)
    if array.ndim == 3:
        array = array[:, None]
    elif array.ndim == 4:
        if array.shape[-1] <= 4 < array.shape[1]:
            array = np.moveaxis(array, -1, 1)
        elif array.shape[1] > 4:
            raise ValueError(
                f"{name} has shape {array.shape}, where neither axis 1 nor the last can be the "
                "channels (at most 4); pass (n, height, width, channels)"
            )
    else:
        raise ValueError(
            f"{name} must have shape (n, height, width) or (n, height, width, channels), "
            f"got {array.shape}"
        )
    if array.size == 0:
        raise ValueError(f"{name} holds no images: its shape is {array.shape}")
    if array.dtype == np.bool_:
        array = array.astype(np.uint8) * np.uint8(255)
    if array.dtype.kind in "iu" and array.dtype != np.uint8:
        if array.min() < 0 or array.max() > 255:
            raise ValueError(
                f"{name} has whole numbers from {array.min()} to {array.max()}; "
                "scale them to 0…255 (uint8) or to 0…1 (float32)"
            )
        array = array.astype(np.uint8)
    if array.dtype.kind == "f":
        if not np.isfinite(array).all() or array.min() < 0 or array.max() > 1:
            raise ValueError(
                f"{name} has values from {np.min(array):g} to {np.max(array):g}; "
                "floating-point images must lie in 0…1: rescale them"
            )
        array = array.astype(np.float32)
    if array.dtype not in (np.uint8, np.float32):
        raise ValueError(f"{name} must hold numbers, got dtype {array.dtype}")
    return np.ascontiguousarray(array)


def read_folder(
    path: Path, size: int | None = None
) -> tuple[np.ndarray, np.ndarray | None, tuple[str, ...], tuple[str, ...]]:
    """Images (n, c, h, w), labels and class names from subfolders, and notes on what was skipped.

    Grey stays grey if all are; otherwise everything becomes RGB.  Transparency is laid on white.
    Images that share one size of at most 64 pixels keep it; else the shorter side is resized to
    ``size`` (default 32) and the centre cropped to a square.
    """
    image_module = pillow()
    if size is not None and not 4 <= size <= 1024:
        raise ValueError(f"size must be between 4 and 1024 pixels, got {size}")
    files = sorted(p for p in path.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
    if not files:
        raise ValueError(f"{path} holds no images ({', '.join(sorted(SUFFIXES))})")
    opened, kept, notes = [], [], []
    for file in files:
        try:
            opened.append(_open(image_module, file))
            kept.append(file)
        except (OSError, ValueError, SyntaxError, image_module.DecompressionBombError) as error:
            reason = str(error).replace(str(file), "the file")
            notes.append(f"skipped {file.relative_to(path)}: {reason}")
    if len(notes) > len(opened):
        raise ValueError(
            f"{path}: {len(notes)} of {len(files)} image files cannot be read, the first: "
            f"{notes[0]}"
        )
    shapes = Counter(picture.size for picture in opened)
    common = next(iter(shapes))
    side = None
    if size is not None or len(shapes) > 1 or max(common) > LARGEST_KEPT or min(common) < 4:
        side = size or DEFAULT_SIDE
        notes.append(f"images were resized and cropped to {side}×{side} pixels")
    mode = "L" if all(picture.mode == "L" for picture in opened) else "RGB"
    arrays = [np.asarray(_fit(image_module, p, side).convert(mode)) for p in opened]
    pictures = as_images(np.stack(arrays), str(path))
    labels, classes = _folder_labels(path, kept)
    return pictures, labels, classes, tuple(notes)


def pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra("reading and writing images", "train", "pillow") from None
    return Image


def _open(image_module: Any, file: Path) -> Any:
    """One picture in mode L or RGB, decoded to its last byte."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow warns about odd metadata that does not matter.
        with image_module.open(file) as picture:
            picture.load()
            if picture.mode == "F" or picture.mode.startswith("I"):  # more than 8 bits of grey
                values = np.nan_to_num(np.asarray(picture, dtype=np.float64))
                top = 65535.0 if values.max() > 255 else 255.0
                if picture.mode == "F" and values.max() <= 1:
                    top = 1.0
                grey = np.clip(values * (255.0 / top) + 0.5, 0, 255)
                return image_module.fromarray(grey.astype(np.uint8))
            if "A" in picture.getbands() or "transparency" in picture.info:
                picture = picture.convert("RGBA")
                white = image_module.new("RGBA", picture.size, (255, 255, 255, 255))
                picture = image_module.alpha_composite(white, picture).convert("RGB")
                bands = np.asarray(picture)
                same = (bands == bands[..., :1]).all()
                return picture.convert("L") if same else picture
            return picture.convert("L" if picture.mode in ("1", "L") else "RGB")


def _fit(image_module: Any, picture: Any, side: int | None) -> Any:
    """Shorter side to ``side``, then the central square."""
    if side is None:
        return picture
    width, height = picture.size
    scale = side / min(width, height)
    width, height = max(side, round(width * scale)), max(side, round(height * scale))
    picture = picture.resize((width, height), image_module.Resampling.BICUBIC)
    left, top = (width - side) // 2, (height - side) // 2
    return picture.crop((left, top, left + side, top + side))


def _folder_labels(path: Path, files: list[Path]) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """The first folder below ``path`` is the class, if every image has one."""
    tops = [file.relative_to(path).parts for file in files]
    if any(len(parts) < 2 for parts in tops):
        return None, ()
    classes = tuple(sorted({parts[0] for parts in tops}))
    number = {name: k for k, name in enumerate(classes)}
    return np.array([number[parts[0]] for parts in tops], dtype=np.int64), classes


def to_bytes(pictures: np.ndarray) -> np.ndarray:
    """Images (n, c, h, w), floats in 0…1 or uint8, as uint8 (n, h, w, 3 or 1)."""
    if pictures.dtype != np.uint8:
        pictures = np.clip(np.asarray(pictures, np.float64) * 255.0 + 0.5, 0, 255).astype(np.uint8)
    pictures = np.moveaxis(pictures, 1, -1)
    if pictures.shape[-1] == 2:
        pictures = pictures[..., :1]
    return pictures[..., :3]


def tile(pictures: np.ndarray, columns: int, gap: int = 0) -> np.ndarray:
    """Images (n, c, h, w) side by side, row after row, as uint8 (H, W, 3 or 1)."""
    small = to_bytes(pictures)
    n, height, width, channels = small.shape
    rows = -(-n // columns)
    shape = (rows * (height + gap) - gap, columns * (width + gap) - gap, channels)
    sheet = np.full(shape, 255 if gap else 0, np.uint8)
    for k, picture in enumerate(small):
        top, left = (k // columns) * (height + gap), (k % columns) * (width + gap)
        sheet[top : top + height, left : left + width] = picture
    return sheet


def encode(sheet: np.ndarray, form: str = "PNG", quality: int = 85) -> bytes:
    """A sheet (H, W, 3 or 1) as the bytes of a PNG or JPEG file."""
    import io

    picture = pillow().fromarray(sheet[..., 0] if sheet.shape[-1] == 1 else sheet)
    out = io.BytesIO()
    picture.save(out, form, **({"quality": quality} if form == "JPEG" else {"optimize": True}))
    return out.getvalue()
