"""Data sets as their authors publish them: where they are, how to fetch and how to read them."""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
import urllib.error
import urllib.request
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_IDX = {
    "x_train": "train-images-idx3-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}
_CIFAR = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5")


@dataclass(frozen=True)
class Published:
    """A data set's homes (tried in order), its files with their MD5, and the classes' names.

    MD5 is what the publishers give; it guards against broken transfers, not against attackers,
    and nothing that is downloaded is ever executed or unpickled.
    """

    homes: tuple[str, ...]
    files: dict[str, str]
    classes: tuple[str, ...]


SETS = {
    "mnist": Published(
        (
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
        ),
        {
            "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
            "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
            "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
        },
        tuple("0123456789"),
    ),
    "fashion-mnist": Published(
        (
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        ),
        {
            "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
            "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
            "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
        },
        ("T-shirt", "trouser", "pullover", "dress", "coat")
        + ("sandal", "shirt", "sneaker", "bag", "boot"),
    ),
    "cifar10": Published(
        ("https://www.cs.toronto.edu/~kriz/",),
        {"cifar-10-binary.tar.gz": "c32a1d4ab5d03f1284b67883e8d87530"},
        ("airplane", "automobile", "bird", "cat", "deer")
        + ("dog", "frog", "horse", "ship", "truck"),
    ),
}

Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def read(name: str, data_dir: Any = None) -> Parts:
    """Train images, test images, train labels, test labels; downloaded if data_dir is None."""
    folder = fetch(name) if data_dir is None else Path(data_dir).expanduser()
    if not folder.is_dir():
        raise ValueError(f"data_dir={str(folder)!r} is not a folder")
    return _read_cifar(folder) if name == "cifar10" else _read_idx_set(name, folder)


def cache() -> Path:
    """The user's cache: $SMMD_CACHE, or smmd in the system's cache folder."""
    if own := os.environ.get("SMMD_CACHE"):
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(base) if base else Path.home() / ".cache") / "smmd"


def fetch(name: str, homes: tuple[str, ...] | None = None) -> Path:
    """Download what is missing of a data set to the cache; files appear whole and verified."""
    source, folder = SETS[name], cache() / name
    folder.mkdir(parents=True, exist_ok=True)
    for file, md5 in source.files.items():
        target = folder / file
        if target.is_file() and _md5(target) == md5:
            continue
        _download([home + file for home in homes or source.homes], target, md5, name)
    return folder


def _download(urls: list[str], target: Path, md5: str, name: str) -> None:
    part, failures = target.with_name(target.name + ".part"), []
    for url in urls:
        for _ in range(2):  # a second try continues a broken transfer, or replaces a wrong file
            try:
                _transfer(url, part)
            except (OSError, ValueError) as error:  # URLError is an OSError
                failures.append(f"{url}: {error}")
                continue
            if _md5(part) == md5:
                os.replace(part, target)
                return
            failures.append(f"{url}: not the published file (MD5 {_md5(part)}, expected {md5})")
            part.unlink()
    raise ConnectionError(
        f"{target.name} could not be downloaded:\n  " + "\n  ".join(failures) + "\n"
        f"Fetch it by hand, and pass its folder as data_dir (--data-dir), or put it into "
        f"{target.parent}; --data mnist-subset needs no network"
        + ("" if name == "mnist" else " (digits)")
    )


def _transfer(url: str, part: Path) -> None:
    """Append to ``part`` what is missing of ``url``."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "smmd"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        reply = urllib.request.urlopen(request, timeout=30)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # nothing is missing
            error.close()
            return
        raise
    with reply:
        continued = reply.status == 206
        expected = reply.headers.get("Content-Length")
        got = 0
        with open(part, "ab" if continued else "wb") as out:
            while block := reply.read(1 << 20):
                out.write(block)
                got += len(block)
        if expected is not None and got < int(expected):
            raise ConnectionError(f"the connection ended after {got} of {expected} bytes")


def _md5(path: Path) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _read_idx_set(name: str, folder: Path) -> Parts:
    found = {key: _find(folder, stem) for key, stem in _IDX.items()}
    missing = [_IDX[key] for key, path in found.items() if path is None and key.startswith("x")]
    if missing:
        raise ValueError(
            f"{folder} lacks {' and '.join(missing)} (.gz or not), which data={name!r} is read from"
        )
    parts = {key: read_idx(path) if path else None for key, path in found.items()}
    for x, y in (("x_train", "y_train"), ("x_test", "y_test")):
        pictures, labels = parts[x], parts[y]
        assert pictures is not None
        if pictures.ndim != 3:
            raise ValueError(f"{found[x]} holds no images: its shape is {pictures.shape}")
        if labels is not None and labels.shape != pictures.shape[:1]:
            raise ValueError(
                f"{found[y]} has {labels.shape} labels for {len(pictures)} images: "
                "the two files do not belong together"
            )
    return parts["x_train"][:, None], parts["x_test"][:, None], parts["y_train"], parts["y_test"]  # type: ignore[index,return-value]


def _find(folder: Path, stem: str) -> Path | None:
    # Some distributions write train-images.idx3-ubyte.
    for base in (stem, stem.replace("-idx", ".idx")):
        for path in (folder / f"{base}.gz", folder / base):
            if path.is_file():
                return path
    return None


def read_idx(path: Path) -> np.ndarray:
    """An idx file of unsigned bytes, gzipped or not."""
    raw = path.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} is damaged: {error}; download it again") from None
    if len(raw) < 4 or raw[:3] != b"\x00\x00\x08" or len(raw) < 4 + 4 * raw[3]:
        raise ValueError(f"{path} is not an idx file of unsigned bytes")
    axes = raw[3]
    shape = tuple(int(v) for v in np.frombuffer(raw, ">u4", axes, 4))
    size = int(np.prod(shape, dtype=np.int64))
    if len(raw) != 4 + 4 * axes + size:
        raise ValueError(
            f"{path} is damaged: {len(raw)} bytes, but its header announces {4 + 4 * axes + size}"
        )
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * axes).reshape(shape)


def _read_cifar(folder: Path) -> Parts:
    """The binary version: records of one label byte and 3·32·32 pixel bytes."""
    names = [f"{stem}.bin" for stem in (*_CIFAR, "test_batch")]
    raw = _cifar_members(folder, names)
    records = []
    for name in names:
        if len(raw[name]) == 0 or len(raw[name]) % 3073:
            raise ValueError(f"{name} of CIFAR-10 is damaged: {len(raw[name])} bytes")
        records.append(np.frombuffer(raw[name], np.uint8).reshape(-1, 3073))
    train, test = np.concatenate(records[:-1]), records[-1]
    return (
        np.ascontiguousarray(train[:, 1:]).reshape(-1, 3, 32, 32),
        np.ascontiguousarray(test[:, 1:]).reshape(-1, 3, 32, 32),
        train[:, 0].copy(),
        test[:, 0].copy(),
    )


def _cifar_members(folder: Path, names: list[str]) -> dict[str, bytes]:
    for base in (folder, folder / "cifar-10-batches-bin"):
        if all((base / name).is_file() for name in names):
            return {name: (base / name).read_bytes() for name in names}
    archive, found = folder / "cifar-10-binary.tar.gz", {}
    if archive.is_file():
        try:
            with tarfile.open(archive) as tar:  # members are read, nothing is extracted
                for member in tar:
                    name = Path(member.name).name
                    if name in names and (file := tar.extractfile(member)):
                        found[name] = file.read()
        except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{archive} is damaged: {error}; download it again") from None
    if len(found) < len(names):
        raise ValueError(
            f"{folder} lacks CIFAR-10's binary version: cifar-10-binary.tar.gz or "
            f"{names[0]} … {names[-1]} (the Python version is made of pickles and not read)"
        )
    return found
