"""Runs that are interrupted, repeated, changed or broken."""

import json
from html.parser import HTMLParser

import pytest

from smmd.paper import registry, runner
from smmd.paper.items import Item
from smmd.paper.model import Cell, Result, Table
from smmd.paper.work import Settings, Sizes, Work, device, versions

calls = []


def compute(work):
    values = [work.part(f"part {k}", k / 3, lambda k=k: step(work, k)) for k in range(3)]
    cells = tuple(Cell((f"row {k}",), "x", v, 0.1, 10.0 * k, 0.1) for k, v in enumerate(values))
    return Result((Table("numbers", "Some | <numbers>", ("Row",), cells),), notes=("a_note*",))


def step(work, k):
    calls.append(k)
    if k == 2 and fail:
        raise KeyboardInterrupt
    return 10.0 * k + float(work.draws(k).normal(1)[0]) * 1e-3


def draw(plt, result):
    figure, ax = plt.subplots()
    ax.plot([c.ours for c in result])
    return figure


def explode(work):
    raise ValueError("it exploded")


ITEM = Item("first", "First <item>", "Table 1", "About it.", compute, draw, uses=("shifts",))
OTHER = Item("second", "Second", "Table 2", "About it.", lambda work: Result(()))
BAD = Item("bad", "Bad", "Table 3", "About it.", explode, turn=-1)
fail = False


@pytest.fixture(autouse=True)
def items(monkeypatch):
    monkeypatch.setattr(registry, "ITEMS", (ITEM, OTHER))
    monkeypatch.setitem(globals(), "fail", False)
    calls.clear()


def test_an_interrupted_run_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "fail", True)
    with pytest.raises(KeyboardInterrupt):
        runner.reproduce(tmp_path)
    assert calls == [0, 1, 2]
    assert not (tmp_path / "results" / "first.json").exists()
    monkeypatch.setitem(globals(), "fail", False)
    runner.reproduce(tmp_path)
    assert calls == [0, 1, 2, 2]
    assert not (tmp_path / "results" / "unfinished").exists()
    whole = (tmp_path / "results" / "first.json").read_text()
    straight = tmp_path / "straight"
    runner.reproduce(straight)
    assert (
        json.loads(whole)["tables"]
        == json.loads((straight / "results" / "first.json").read_text())["tables"]
    )


def test_the_time_of_interrupted_parts_counts(tmp_path):
    work = Work("first", Settings(), tmp_path / "parts")
    work.part("a", 0.0, lambda: 1)
    stored = json.loads((tmp_path / "parts" / "a.json").read_text())
    (tmp_path / "parts" / "a.json").write_text(json.dumps({**stored, "seconds": 7.0}))
    again = Work("first", Settings(), tmp_path / "parts")
    assert again.part("a", 0.0, lambda: 2) == 1
    assert again.spent_before == 7.0


def test_what_is_stored_is_used_again_unless_asked_otherwise(tmp_path):
    runner.reproduce(tmp_path)
    runner.reproduce(tmp_path)
    assert calls == [0, 1, 2]
    runner.reproduce(tmp_path, ["first"], Settings(sizes=Sizes(violin=7)))  # not used by it
    assert calls == [0, 1, 2]
    runner.reproduce(tmp_path, ["first"], Settings(seed=1))
    runner.reproduce(tmp_path, ["first"], Settings(seed=1, sizes=Sizes(shifts=3)))
    assert len(calls) == 9


@pytest.mark.parametrize("text", ["", "{", "[]", '{"tables": []}', '{"tables": 3, "made": {}}'])
def test_a_damaged_result_is_computed_again(tmp_path, text):
    runner.reproduce(tmp_path, ["first"])
    (tmp_path / "results" / "first.json").write_text(text)
    runner.reproduce(tmp_path, ["first"])
    assert calls == [0, 1, 2, 0, 1, 2]


def test_a_damaged_part_is_computed_again(tmp_path):
    work = Work("first", Settings(), tmp_path)
    work.part("a", 0.0, lambda: 1)
    (tmp_path / "a.json").write_text("{")
    assert work.part("a", 0.0, lambda: 2) == 2


def test_one_bad_item_does_not_cost_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "ITEMS", (BAD, ITEM, OTHER))
    with pytest.raises(RuntimeError, match=r"1 of 3 items failed \(bad\)"):
        runner.reproduce(tmp_path)
    assert (tmp_path / "index.html").is_file()
    with pytest.raises(ValueError, match="it exploded"):
        runner.reproduce(tmp_path, ["bad"])


def test_what_is_told(tmp_path):
    told = []
    runner.reproduce(tmp_path, ["first"], show=lambda item, text, share: told.append((text, share)))
    assert told[0] == ("", 0.0)
    assert [text for text, _ in told[1:-1]] == ["part 0", "part 1", "part 2"]
    assert told[-1] == ("", 1.0)
    runner.reproduce(tmp_path, ["first"], show=lambda item, text, share: told.append((text, share)))
    assert told[-1] == ("stored before", 1.0)


class Balanced(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.words = [], [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "link", "img", "br"):
            self.open.append(tag)
        named = dict(attrs)
        self.ids += [named["id"]] if "id" in named else []
        self.links += [named[key] for key in ("href", "src", "xlink:href") if key in named]

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_the_page_in_html(tmp_path):
    page = runner.reproduce(tmp_path)
    reader = Balanced()
    reader.feed(page.read_text(encoding="utf-8"))
    assert reader.open == []
    assert len(reader.ids) == len(set(reader.ids))
    # Nothing is fetched; every link within the page has its target.
    assert all(link.startswith(("#", "data:")) for link in reader.links)
    assert {link[1:] for link in reader.links if link.startswith("#")} <= set(reader.ids)
    text = " ".join(reader.words)
    assert "First <item>" in text
    assert "3 of 3 numbers that can be compared agree" in text


def test_the_page_in_markdown_and_its_files(tmp_path):
    runner.reproduce(tmp_path)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "*Some \\| \\<numbers>*" in text
    assert "| row 1 | 10.00 ± 0.10 ≈ 10.00 ± 0.10 |" in text
    assert "a\\_note\\*" in text
    for name in ("figures/first.svg", "figures/first.png", "tables/numbers.csv"):
        assert (tmp_path / name).stat().st_size > 50
    assert "](figures/first.svg)" in text


def test_a_page_without_matplotlib(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    runner.reproduce(tmp_path)
    assert "<figure>" not in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert not (tmp_path / "figures").exists()
    monkeypatch.undo()
    monkeypatch.setattr(registry, "ITEMS", (ITEM, OTHER))
    runner.write_page(tmp_path)
    assert "<figure>" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_disagreement_is_listed_with_its_reason(tmp_path, monkeypatch):
    def off(work):
        return Result((Table("t", "T", ("Row",), (Cell(("r",), "x", 1.0, 0.1, 2.0, 0.1),)),))

    item = Item("off", "Off", "Table", "About.", off, reason=lambda cell: "because")
    monkeypatch.setattr(registry, "ITEMS", (item,))
    runner.reproduce(tmp_path)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "| Off | because | r, x: 1.00 ≠ 2.00 (−7.1) |" in text
    assert "1.00 ± 0.10 **≠** 2.00 ± 0.10" in text


def test_bad_requests(tmp_path):
    with pytest.raises(ValueError, match="no item 'third'; the items are first, second"):
        runner.reproduce(tmp_path, ["third"])
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is a file"):
        runner.reproduce(tmp_path / "file")
    with pytest.raises(TypeError, match="seed"):
        Settings(seed=1.5)
    with pytest.raises(ValueError, match="seed"):
        Settings(seed=-1)
    with pytest.raises(ValueError, match="repeats"):
        Sizes(repeats=0)
    with pytest.raises(ValueError, match="device"):
        device("tpu")


def test_where_it_was_computed():
    found = versions("cpu", True)
    assert {"device", "python", "numpy", "scipy", "torch", "smmd"} <= set(found)
    assert "CPU core" in found["device"]
