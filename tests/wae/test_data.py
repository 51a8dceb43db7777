"""Images from everywhere: shipped, folders, arrays, published files."""

import gzip
import io
import tarfile

import numpy as np
import pytest
from PIL import Image

from smmd.wae import data, images, published

RNG = np.random.default_rng(0)


def test_the_shipped_digits():
    digits = data.load()
    assert digits.train.shape == (10_000, 1, 28, 28)
    assert digits.test.shape == (2_000, 1, 28, 28)
    assert digits.shape == (1, 28, 28)
    assert np.bincount(digits.train_labels).tolist() == [1000] * 10
    assert np.bincount(digits.test_labels).tolist() == [200] * 10
    start = "841f1441e814beaf3f711d14460854d5bdcbd039ecceeeeb053f0ce39e52e412"
    assert digits.checksum == start


def _save(path, array, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path, **options)


def _pixels(*shape):
    return RNG.integers(0, 256, shape).astype(np.uint8)


def test_a_folder_of_odd_images(tmp_path):
    for k in range(24):
        _save(tmp_path / f"grey{k}.png", _pixels(12, 12))
    _save(tmp_path / "colour.png", _pixels(12, 12, 3))
    transparent = np.zeros((12, 12, 4), np.uint8)
    _save(tmp_path / "transparent.png", transparent)
    _save(tmp_path / "large.jpg", _pixels(90, 60, 3))
    Image.fromarray(_pixels(12, 12)).convert("1").save(tmp_path / "bits.png")
    Image.fromarray(_pixels(12, 12).astype(np.uint16) * 257).save(tmp_path / "deep.png")
    Image.fromarray(np.full((12, 12), 0.5, np.float32)).save(tmp_path / "float.tiff")
    (tmp_path / "corrupt.png").write_bytes((tmp_path / "grey0.png").read_bytes()[:60])
    (tmp_path / "notes.txt").write_text("no image")
    found = data.load(tmp_path, size=16)
    assert found.shape == (3, 16, 16)
    assert len(found.train) + len(found.test) == 30
    assert found.train.dtype == np.uint8
    assert any("skipped corrupt.png" in note for note in found.notes)
    assert any("16×16" in note for note in found.notes)
    # Nothing at all on a transparent picture: white paper.
    every = np.concatenate([found.train, found.test])
    assert (every == 255).all(axis=(1, 2, 3)).sum() == 1
    # Floating-point grey in 0…1.
    assert (every == 128).all(axis=(1, 2, 3)).sum() == 1


def test_grey_stays_grey_and_folders_are_classes(tmp_path):
    for name in ("cats", "dogs"):
        for k in range(15):
            _save(tmp_path / name / f"{k}.png", _pixels(10, 14))
    found = data.load(str(tmp_path))
    assert found.shape == (1, 10, 14)
    assert found.classes == ("cats", "dogs")
    assert len(found.test) == 3
    assert set(found.train_labels) == {0, 1}
    assert found.checksum == data.load(str(tmp_path)).checksum


def test_folders_that_hold_nothing_useful(tmp_path):
    with pytest.raises(ValueError, match="holds no images"):
        data.load(tmp_path)
    for k in range(3):
        (tmp_path / f"{k}.png").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="3 of 3 image files cannot be read, the first: skipped 0"):
        data.load(tmp_path)
    for k in range(3):
        _save(tmp_path / f"{k}.png", _pixels(8, 8))
    with pytest.raises(ValueError, match="at least 20"):
        data.load(tmp_path)
    with pytest.raises(ValueError, match="between 4 and 1024"):
        data.load(tmp_path, size=2)


@pytest.mark.parametrize(
    ("array", "shape"),
    [
        (_pixels(30, 8, 8), (1, 8, 8)),
        (_pixels(30, 8, 8, 3), (3, 8, 8)),
        (_pixels(30, 3, 8, 8), (3, 8, 8)),
        (RNG.random((30, 8, 8)), (1, 8, 8)),
        (_pixels(30, 8, 8).astype(np.int64), (1, 8, 8)),
        (_pixels(30, 8, 8) > 100, (1, 8, 8)),
    ],
)
def test_arrays(array, shape, tmp_path):
    found = data.load(array)
    assert found.shape == shape
    assert len(found.test) == 3
    np.save(tmp_path / "images.npy", array)
    again = data.load(tmp_path / "images.npy")
    assert again.checksum == found.checksum


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((30, 8)), r"got \(30, 8\)"),
        (np.full((30, 8, 8), 2.0), r"0…1"),
        (np.full((30, 8, 8), np.nan), r"0…1"),
        (np.full((30, 8, 8), 300), r"300"),
        (np.zeros((30, 8, 8, 8), np.uint8), "channels"),
        (np.zeros((30, 8, 8), complex), "numbers"),
        (np.zeros((5, 8, 8), np.uint8), "at least 20"),
        (np.zeros((0, 8, 8)), "holds no images"),
    ],
)
def test_arrays_that_are_no_images(array, words):
    with pytest.raises(ValueError, match=words):
        data.load(array)


def test_npz_files(tmp_path):
    train, test = _pixels(40, 8, 8), _pixels(10, 8, 8)
    labels = np.arange(40) % 3
    file = tmp_path / "set.npz"
    np.savez(file, x_train=train, x_test=test, y_train=labels, y_test=np.arange(10) % 3)
    found = data.load(file)
    assert (found.train[:, 0] == train).all()
    assert (found.test[:, 0] == test).all()
    assert found.classes == ("0", "1", "2")
    np.savez(file, pictures=train, more=test)
    with pytest.raises(ValueError, match=r"pictures, more.*x_train"):
        data.load(file)
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="Python objects are refused"):
        data.load(tmp_path / "objects.npy")
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY")
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 and no more")
    for name in ("broken.npy", "broken.npz"):
        with pytest.raises(ValueError, match="could not be read"):
            data.load(tmp_path / name)
    np.savez(file, x_train=train, x_test=test[:1])
    with pytest.raises(ValueError, match="1 test images; at least 2"):
        data.load(file)
    np.savez_compressed(file, x_train=train, x_test=test)
    raw = bytearray(file.read_bytes())
    raw[200:400] = bytes(200)
    file.write_bytes(raw)
    with pytest.raises(ValueError, match="'x_train' is refused"):
        data.load(file)


@pytest.mark.parametrize("name", ["mnits", "no/such/folder", "missing.npy"])
def test_what_is_not_there(name):
    with pytest.raises(ValueError, match=f"data='{name}'"):
        data.load(name)


def idx(array):
    """The format of the published files, written from its description."""
    head = bytes([0, 0, 8, array.ndim])
    return head + b"".join(n.to_bytes(4, "big") for n in array.shape) + array.tobytes()


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_published_files_lie_there_already(tmp_path, packed, name):
    parts = {
        "train-images-idx3-ubyte": _pixels(30, 28, 28),
        "train-labels-idx1-ubyte": _pixels(30) % 10,
        "t10k-images-idx3-ubyte": _pixels(20, 28, 28),
        "t10k-labels-idx1-ubyte": _pixels(20) % 10,
    }
    for stem, array in parts.items():
        raw = idx(array)
        (tmp_path / (stem + ".gz" * packed)).write_bytes(gzip.compress(raw) if packed else raw)
    found = data.load(name, data_dir=tmp_path)
    assert (found.train[:, 0] == parts["train-images-idx3-ubyte"]).all()
    assert (found.test_labels == parts["t10k-labels-idx1-ubyte"]).all()
    assert len(found.classes) == 10


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda raw: gzip.compress(raw)[:-20], "damaged"),
        (lambda raw: raw[:-1], "header announces"),
        (lambda raw: b"\x00\x00\x0d" + raw[3:], "not an idx file"),
        (lambda raw: None, "lacks train-images"),
    ],
)
def test_published_files_that_are_damaged(tmp_path, damage, words):
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(idx(_pixels(20, 28, 28)))
    bad = damage(idx(_pixels(30, 28, 28)))
    if bad is not None:
        (tmp_path / "train-images-idx3-ubyte").write_bytes(bad)
    with pytest.raises(ValueError, match=words):
        data.load("mnist", data_dir=tmp_path)
    with pytest.raises(ValueError, match="not a folder"):
        data.load("mnist", data_dir=tmp_path / "nowhere")


def _cifar(n, seed):
    return np.random.default_rng(seed).integers(0, 256, (n, 3073)).astype(np.uint8)


def test_cifar_in_its_archive_and_unpacked(tmp_path):
    records = {f"data_batch_{k}.bin": _cifar(5, k) for k in range(1, 6)}
    records["test_batch.bin"] = _cifar(4, 9)
    with tarfile.open(tmp_path / "cifar-10-binary.tar.gz", "w:gz") as tar:
        for name, array in records.items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = array.nbytes
            tar.addfile(member, io.BytesIO(array.tobytes()))
    packed = data.load("cifar10", data_dir=tmp_path)
    assert packed.train.shape == (25, 3, 32, 32)
    assert (packed.train[5] == records["data_batch_2.bin"][0, 1:].reshape(3, 32, 32)).all()
    assert (packed.test_labels == records["test_batch.bin"][:, 0]).all()
    folder = tmp_path / "other" / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    for name, array in records.items():
        (folder / name).write_bytes(array.tobytes())
    assert data.load("cifar10", data_dir=folder.parent).checksum == packed.checksum
    (folder / "test_batch.bin").unlink()
    with pytest.raises(ValueError, match="lacks CIFAR-10's binary version"):
        data.load("cifar10", data_dir=folder.parent)


def test_sheets_of_images():
    pictures = np.stack([np.full((1, 4, 4), k / 5, np.float32) for k in range(6)])
    sheet = images.tile(pictures, 3, gap=1)
    assert sheet.shape == (9, 14, 1)
    assert sheet[5, 6, 0] == round(255 * 4 / 5)
    again = np.asarray(Image.open(io.BytesIO(images.encode(sheet))))
    assert (again == sheet[..., 0]).all()


def test_the_cache_is_where_it_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("SMMD_CACHE", str(tmp_path / "own"))
    assert published.cache() == tmp_path / "own"
    monkeypatch.delenv("SMMD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert published.cache() == tmp_path / "smmd"
