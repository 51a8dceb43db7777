"""What a run learns from: images as one array, read from wherever they are.

load("mnist-subset")                          shipped with the package, no network
load("mnist" | "fashion-mnist" | "cifar10")   downloaded once, or read from data_dir
load("photos/")                               a folder of images
load("images.npy"), load("images.npz")        an array; never unpickled
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from smmd.wae import images, published

SUBSET = "mnist-subset"
DIGITS = tuple("0123456789")
#: What reading a damaged NPY or NPZ file may raise besides ValueError.
_UNREADABLE = (OSError, EOFError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class Dataset:
    """Images (n, channels, height, width), uint8 in 0…255 or float32 in 0…1; labels for display."""

    name: str
    train: np.ndarray
    test: np.ndarray
    train_labels: np.ndarray | None = None
    test_labels: np.ndarray | None = None
    classes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for part, array in (("train", self.train), ("test", self.test)):
            if array.ndim != 4 or array.dtype not in (np.uint8, np.float32):
                raise ValueError(
                    f"{part} images must be uint8 or float32 of shape (n, channels, height, "
                    f"width), got {array.dtype} {array.shape}"
                )
            if len(array) < 2:
                raise ValueError(
                    f"{self.name} holds {len(array)} {part} images; at least 2 are needed"
                )
        if self.train.shape[1:] != self.test.shape[1:]:
            raise ValueError(
                f"train and test images must have one shape, got {self.train.shape[1:]} and "
                f"{self.test.shape[1:]}"
            )

    @property
    def shape(self) -> tuple[int, int, int]:
        """(channels, height, width)."""
        channels, height, width = self.train.shape[1:]
        return int(channels), int(height), int(width)

    @property
    def checksum(self) -> str:
        """SHA-256 over both parts: two runs with the same one have seen the same pixels."""
        digest = hashlib.sha256()
        for part in (self.train, self.test):
            digest.update(f"{part.dtype.name} {part.shape}".encode())
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()


def load(data: Any = SUBSET, *, data_dir: Any = None, size: int | None = None) -> Dataset:
    """A ``Dataset`` from a name, a folder of images, an NPY or NPZ file, or an array.

    Parameters
    ----------
    data : str, path, array or Dataset
        ``"mnist-subset"``, ``"mnist"``, ``"fashion-mnist"``, ``"cifar10"``, a folder, a file, or
        an array of images.
    data_dir : path, optional
        Where the published files of a named data set lie already; nothing is downloaded then.
    size : int, optional
        For a folder: the side that images are brought to (shorter side resized, centre cropped).
    """
    if isinstance(data, Dataset):
        return data
    if not isinstance(data, str | Path):
        return from_array(np.asarray(data))
    name = str(data)
    if name == SUBSET:
        return shipped()
    if name in published.SETS:
        return Dataset(name, *published.read(name, data_dir), classes=published.SETS[name].classes)
    path = Path(name).expanduser()
    if path.is_dir():
        return from_folder(path, size)
    if path.suffix.lower() in (".npy", ".npz"):
        if not path.is_file():
            raise ValueError(f"data={name!r}: there is no such file")
        return from_file(path)
    known = ", ".join([SUBSET, *published.SETS])
    raise ValueError(
        f"data={name!r} is neither a known data set ({known}) nor an existing folder of images, "
        "an .npy or an .npz file"
    )


def is_file(data: str | Path) -> bool:
    """Whether ``data`` is a place on disk and not the name of a data set."""
    known = str(data) == SUBSET or str(data) in published.SETS
    return not known and Path(data).expanduser().exists()


def shipped() -> Dataset:
    """10,000 training and 2,000 test digits of MNIST, balanced; see shipped/ORIGIN.md."""
    source = resources.files("smmd.wae") / "shipped" / "mnist-subset.npz"
    with resources.as_file(source) as path, np.load(path, allow_pickle=False) as parts:
        x_train, x_test = parts["x_train"][:, None], parts["x_test"][:, None]
        return Dataset(SUBSET, x_train, x_test, parts["y_train"], parts["y_test"], DIGITS)


def from_folder(path: Path, size: int | None = None) -> Dataset:
    """Every readable image under ``path``; a tenth of them, chosen by lot, is the test set."""
    pictures, labels, classes, notes = images.read_folder(path, size)
    train, test = _split(len(pictures))
    return Dataset(
        path.name or str(path),
        pictures[train],
        pictures[test],
        None if labels is None else labels[train],
        None if labels is None else labels[test],
        classes,
        notes,
    )


def from_file(path: Path) -> Dataset:
    """An NPY file of images, or an NPZ file with train (and test) images and labels."""
    with open(path, "rb") as file:
        try:
            loaded = np.load(file, allow_pickle=False)
        except (ValueError, *_UNREADABLE) as error:
            raise ValueError(
                f"{path} could not be read as an NPY or NPZ file of numbers ({error}); arrays of "
                "Python objects are refused because reading them can run code"
            ) from None
        if isinstance(loaded, np.ndarray):
            return from_array(loaded, path.stem)
        with loaded as parts:
            return _from_parts(parts, path)


def _from_parts(parts: Any, path: Path) -> Dataset:
    def find(*names: str) -> np.ndarray | None:
        for name in names:
            if name in parts.files:
                try:
                    return np.asarray(parts[name])
                except (ValueError, *_UNREADABLE) as error:
                    raise ValueError(f"{path}: the array {name!r} is refused: {error}") from None
        return None

    train = find("x_train", "train", "train_images", "images", "x", "arr_0")
    if train is None:
        raise ValueError(
            f"{path} holds the arrays {', '.join(parts.files)}; name the images 'x_train' "
            "(and 'x_test'; labels 'y_train', 'y_test'), or save one array only"
        )
    test = find("x_test", "test", "test_images")
    labels = find("y_train", "train_labels", "labels", "y")
    test_labels = find("y_test", "test_labels")
    if test is None:
        return from_array(train, path.stem, labels)
    train, test = images.as_images(train, "x_train"), images.as_images(test, "x_test")
    pair = (_labels(labels, len(train)), _labels(test_labels, len(test)))
    if pair[0] is None or pair[1] is None:
        pair = (None, None)
    return Dataset(path.stem, train, test, *pair, classes=_class_names(pair[0]))


def from_array(array: np.ndarray, name: str = "array", labels: Any = None) -> Dataset:
    """An array of images; a tenth of them, chosen by lot, is the test set."""
    pictures = images.as_images(array, name)
    train, test = _split(len(pictures))
    labels = _labels(labels, len(pictures))
    if labels is None:
        return Dataset(name, pictures[train], pictures[test])
    return Dataset(
        name, pictures[train], pictures[test], labels[train], labels[test], _class_names(labels)
    )


def _labels(labels: np.ndarray | None, n: int) -> np.ndarray | None:
    """Whole-number labels, or None: labels only colour the report."""
    if labels is None or labels.size != n or labels.dtype.kind not in "iu":
        return None
    return labels.reshape(n).astype(np.int64)


def _class_names(labels: np.ndarray | None) -> tuple[str, ...]:
    if labels is None or labels.min() < 0 or labels.max() > 999:
        return ()
    return tuple(map(str, range(int(labels.max()) + 1)))


def _split(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The same tenth for the same number of images, so that a resumed run keeps its test set."""
    if n < 20:
        raise ValueError(f"there are {n} images; training and testing need at least 20")
    order = np.random.default_rng(0).permutation(n)
    held_out = max(2, n // 10)
    return np.sort(order[held_out:]), np.sort(order[:held_out])
