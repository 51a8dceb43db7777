"""The report: one file, valid and whole, for every kind of run; its explorer shows the decoder."""

from __future__ import annotations

import base64
import dataclasses
import io
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from smmd.wae import report
from smmd.wae.evaluation import evaluate
from smmd.wae.report import explorer
from tests.wae.standin import Linear, Normal, some_digits, tinted

VOID = {"meta", "link", "img", "br", "input", "path", "use", "hr"}


class Reader(HTMLParser):
    """Checks that elements nest, and collects what a browser would look at."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.pointers: list[str] = []
        self.without_alt = 0
        self.scripts: list[tuple[dict[str, str | None], str]] = []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        self.without_alt += tag == "img" and not found.get("alt")
        self.ids += [found["id"]] if found.get("id") else []
        self.links += [found[k] for k in ("src", "href", "xlink:href") if found.get(k)]
        for name in ("for", "aria-labelledby", "aria-describedby"):
            self.pointers += (found.get(name) or "").split()
        if tag == "script":
            self.scripts.append((found, ""))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        before = len(self.open)
        self.handle_starttag(tag, attrs)
        del self.open[before:]

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)


def read(path: Path) -> tuple[str, Reader, dict]:
    text = path.read_text(encoding="utf-8")
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    payload = next(t for a, t in reader.scripts if a.get("type") == "application/json")
    return text, reader, json.loads(payload)


RUNS = {
    "digits": lambda folder: Linear(folder, some_digits(), 4),
    "one dimension": lambda folder: Normal(folder, some_digits(), 1),
    "many dimensions": lambda folder: Linear(folder, some_digits(), 64),
    "colour": lambda folder: Linear(folder, tinted(), 3),
    "odd size": lambda folder: Linear(folder, tinted(side=19, n=120), 2),
}


@pytest.fixture(scope="module", params=RUNS)
def written(request, tmp_path_factory):
    run = RUNS[request.param](tmp_path_factory.mktemp("run") / "a <run> & more")
    return run, report.write(run)


def test_one_file_that_fetches_nothing(written):
    _, path = written
    text, reader, _ = read(path)
    assert all(link.startswith(("data:", "#")) for link in reader.links)
    assert not re.search(r"""(?:url\(|@import|src=|href=)\s*['"]?(?:https?:)?//""", text)
    assert "fetch(" not in text
    assert "XMLHttpRequest" not in text
    assert len(reader.ids) == len(set(reader.ids))
    assert set(reader.pointers) <= set(reader.ids)
    assert reader.without_alt == 0
    assert len(text) < 8e6
    assert path.parent.joinpath("evaluation.json").is_file()


def test_the_verdict_comes_first_and_names_stay_text(written):
    text, _, _ = read(written[1])
    body = text[text.index("<body>") :]
    assert body.index('class="verdict') < body.index("<img") < body.index("<svg")
    assert "<run>" not in text
    assert "a &lt;run&gt; &amp; more" in text
    for part in ("What it makes", "Explore", "Training", "The latent space", "All numbers"):
        assert f">{part}</h2>" in text


def test_scripts_are_javascript(written, tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    _, reader, _ = read(written[1])
    sources = [text for attributes, text in reader.scripts if not attributes.get("type")]
    assert len(sources) == 1
    (tmp_path / "page.js").write_text(sources[0], encoding="utf-8")
    subprocess.run([node, "--check", tmp_path / "page.js"], check=True)


def sheet(payload: dict, key: str) -> np.ndarray:
    kind, _, data = payload["sheets"][key].partition(",")
    assert kind == "data:image/jpeg;base64"
    with Image.open(io.BytesIO(base64.b64decode(data))) as picture:
        return np.asarray(picture.convert("RGB"), dtype=float)


def test_every_plane_is_there_and_shows_what_the_decoder_makes(written):
    run, path = written
    _, _, payload = read(path)
    axes, grid = payload["axes"], payload["grid"]
    pairs = [(a, b) for k, a in enumerate(axes) for b in axes[k + 1 :]] or [(axes[0], axes[0])]
    keys = {f"{s}:{a}-{b}" for s in range(len(payload["starts"])) for a, b in pairs}
    assert set(payload["sheets"]) == keys
    assert len(axes) == min(run.latent, explorer.MOST_AXES)
    ticks = np.linspace(-payload["reach"], payload["reach"], grid)
    (height, width), (tall, wide) = payload["size"], payload["tile"]
    a, b = pairs[-1]
    last = len(payload["starts"]) - 1
    pixels = sheet(payload, f"{last}:{a}-{b}")
    assert pixels.shape == ((1 if a == b else grid) * tall, grid * wide, 3)
    start = np.zeros(run.latent)
    start[axes] = payload["starts"][last]["code"]
    if run.latent > len(axes):  # the page holds the start's shown coordinates only
        start = explorer._starts(run.images, run.encode(run.images.test))[last].code
    for row, column in ((0, 0), (0, grid - 1)) if a == b else ((0, grid - 1), (grid - 1, 2)):
        code = start.copy()
        if a != b:
            code[b] = ticks[row]
        code[a] = ticks[column]
        expected = np.moveaxis(run.decode(code[None])[0], 0, -1) * 255
        shown = pixels[row * tall :, column * wide :][:height, :width]
        # JPEG at this quality, and starting points rounded to two digits.
        assert np.abs(shown - expected).mean() < 6
        assert np.abs(shown - 255 + expected).mean() > 20


def test_large_images_and_many_planes_are_thinned_to_keep_the_page_small(tmp_path, monkeypatch):
    run = Linear(tmp_path, some_digits(), 6)
    influence = explorer.influence_of(run, 6)[0]
    full = explorer._plan(run, influence, [explorer.Start("", np.zeros(6))] * 4)
    assert (len(full.axes), full.starts, full.grid) == (6, 4, 11)
    monkeypatch.setattr(explorer, "MOST_TEXT", 150_000)
    poor = explorer._plan(run, influence, [explorer.Start("", np.zeros(6))] * 4)
    assert poor.starts == 1
    assert poor.grid < 11
    monkeypatch.setattr(explorer, "MOST_TEXT", 20_000)
    poorest = explorer._plan(run, influence, [explorer.Start("", np.zeros(6))] * 4)
    assert 2 <= len(poorest.axes) < 6
    assert poorest.dropped == 6 - len(poorest.axes)
    strongest = set(np.argsort(-influence)[: len(poorest.axes)])
    assert set(poorest.axes) == strongest
    big = explorer._shrunk(np.zeros((2, 3, 400, 200), np.float32))
    assert big.shape == (2, 96, 48, 3)


def test_influence_finds_the_axis_that_does_nothing(tmp_path):
    run = Linear(tmp_path, some_digits(), 3)
    run.spread[1] = 0.0
    influence, walks = explorer.influence_of(run, 3)
    assert influence[1] < 1e-6  # rounding
    assert influence[0] > influence[2] > 0.01
    assert walks.shape == (3, 7, 1, 28, 28)


def test_the_same_run_gives_the_same_page(tmp_path):
    run = Linear(tmp_path / "run", tinted(), 2)
    found = evaluate(run)
    assert report.write(run, found).read_bytes() == report.write(run, found).read_bytes()


def test_a_run_without_a_log_or_a_folder(tmp_path):
    run = Linear(tmp_path / "run", tinted(), 2)
    run.log = []
    assert ">Training</h2>" not in report.write(run).read_text(encoding="utf-8")
    run.folder = None
    with pytest.raises(ValueError, match="the run is kept nowhere"):
        report.write(run)


def test_outliers_are_shown(tmp_path):
    class Far(Normal):
        def encode(self, pictures, *, rng=None):
            codes = super().encode(pictures)
            codes[:1] = 7.0
            return codes

    text = report.write(Far(tmp_path / "run", tinted(), 2)).read_text(encoding="utf-8")
    assert "1 test image has a code further out than any of 60 normal codes" in text
    assert "distance 9.9" in text


def test_several_seeds_on_one_page(tmp_path):
    found = evaluate(Linear(tmp_path / "seeds" / "seed-0", tinted(), 2))
    other = dataclasses.replace(found, run="seed-1", seed=1, mse=found.mse + 0.002)
    path = report.write_spread(tmp_path / "seeds", [found, other])
    text = path.read_text(encoding="utf-8")
    assert 'href="seed-0/report.html"' in text
    assert f"{found.mse + 0.001:.4f}" in text
    assert f"{0.002 / 2**0.5:.4f}" in text
