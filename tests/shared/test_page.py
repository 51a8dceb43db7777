"""A page is one file that needs nothing else, and text in it stays text."""

from html.parser import HTMLParser
from pathlib import Path

from smmd.figures import encode, look
from smmd.report.page import Page


class _Reader(HTMLParser):
    """Collects tags, ids and everything that would be fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "link", "img", "br"):
            self.open.append(tag)
        self._look(attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._look(attrs)

    def _look(self, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.append(value)
            if name in ("src", "href", "xlink:href") and value:
                self.fetched.append(value)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def _read(page: Page) -> _Reader:
    reader = _Reader()
    reader.feed(page.render())
    reader.close()
    assert reader.open == []
    return reader


def _figures() -> dict[str, bytes]:
    with look() as plt:
        figure, ax = plt.subplots(figsize=(2, 1))
        ax.plot([0, 1], [0, 1])
        made = encode(figure)
        plt.close(figure)
    return made


def test_two_figures_on_a_page_share_no_ids_and_fetch_nothing() -> None:
    page = Page("Two figures")
    pictures = _figures()
    page.figure(pictures["svg"], "first")
    page.figure(pictures["svg"], "second")
    page.figure(pictures["png"], "third")
    reader = _read(page)
    assert len(reader.ids) == len(set(reader.ids)) > 0
    assert all(link.startswith(("#", "data:")) for link in reader.fetched)
    inside = {link[1:] for link in reader.fetched if link.startswith("#")}
    assert inside <= set(reader.ids)


def test_figures_have_the_same_bytes_each_time() -> None:
    assert _figures() == _figures()


def test_text_is_escaped_everywhere() -> None:
    nasty = '<script>alert("x")</script>'
    page = Page(nasty, lead=nasty)
    page.heading(nasty)
    page.text(nasty)
    page.verdict(nasty, "warn")
    page.table([nasty], [[nasty]], caption=nasty)
    page.figure(_figures()["svg"], nasty, alt=nasty)
    assert "<script>" not in page.render()
    _read(page)


def test_a_script_cannot_end_its_own_element() -> None:
    page = Page("Script")
    page.script('const text = "</script>";')
    assert _read(page).open == []
    assert page.render().count("</script>") == 1


def test_numbers_are_set_right_and_words_left(tmp_path: Path) -> None:
    page = Page("Table")
    page.table(["name", "p"], [["a", "1.2e-3"], ["b", "−0.5"], ["c", ""]])
    page.write(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<td>a</td><td class=number>1.2e-3</td>" in text
