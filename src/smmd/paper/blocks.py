"""A document that is written twice: as HTML and as Markdown."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from smmd.report.page import Page


@dataclass(frozen=True)
class Entry:
    """One cell of a table: what stands out, what stands beside it, and a class for its colour."""

    main: str
    rest: str = ""
    kind: str = ""
    bold: bool = False
    hint: str = ""


@dataclass(frozen=True)
class Heading:
    text: str
    anchor: str = ""
    level: int = 2


@dataclass(frozen=True)
class Text:
    text: str
    quiet: bool = False


@dataclass(frozen=True)
class Grid:
    """A table; the first ``labels`` columns name the row."""

    headers: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    caption: str = ""
    labels: int = 1


@dataclass(frozen=True)
class Links:
    """Names of items with their anchors."""

    targets: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Picture:
    """A figure: the SVG's bytes for the page, its file for the Markdown."""

    svg: bytes
    file: str
    caption: str


Block = Heading | Text | Grid | Links | Picture

STYLE = """
.grid td{white-space:nowrap}.grid td.wide{white-space:normal;min-width:16rem;max-width:34rem}
.grid caption{white-space:nowrap;padding-top:.7rem}
.grid small{color:var(--soft)}.grid td.yes small::before{content:"≈ ";color:var(--good)}
.grid td.no{background:color-mix(in srgb,var(--bad) 14%,transparent)}
.grid td.no small::before{content:"≠ ";color:var(--bad);font-weight:600}
.quiet{color:var(--soft);font-size:.92rem}
.answer-yes{color:var(--good);font-weight:600}.answer-no{color:var(--bad);font-weight:600}
.answer-partly,.answer-open{color:var(--warn);font-weight:600}
nav a{margin-right:.9rem;white-space:nowrap}
body{max-width:76rem}
"""


def as_html(title: str, lead: str, blocks: Sequence[Block]) -> str:
    """One self-contained page."""
    page = Page(title, lead=lead)
    page.style(STYLE)
    for block in blocks:
        match block:
            case Heading():
                page.heading(block.text, level=block.level, anchor=block.anchor)
            case Text(quiet=True):
                page.html(f'<p class="quiet">{html.escape(block.text)}</p>')
            case Text():
                page.text(block.text)
            case Links():
                links = (
                    f'<a href="#{html.escape(anchor)}">{html.escape(text)}</a>'
                    for text, anchor in block.targets
                )
                page.html(f"<nav>{' '.join(links)}</nav>")
            case Picture():
                page.figure(block.svg, block.caption)
            case Grid():
                page.html(_grid(block))
    return page.render()


def _grid(grid: Grid) -> str:
    head = "".join(f"<th>{html.escape(text)}</th>" for text in grid.headers)
    body = "\n".join(f"<tr>{''.join(map(_entry, row))}</tr>" for row in grid.rows)
    caption = f"<caption>{html.escape(grid.caption)}</caption>" if grid.caption else ""
    return (
        f'<div class="scroll grid"><table>{caption}<thead><tr>{head}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )


def _entry(entry: Entry) -> str:
    kind = f' class="{entry.kind}"' if entry.kind else ""
    hint = f' title="{html.escape(entry.hint, quote=True)}"' if entry.hint else ""
    main = html.escape(entry.main)
    if entry.bold:
        main = f"<b>{main}</b>"
    rest = f"<br><small>{html.escape(entry.rest)}</small>" if entry.rest else ""
    return f"<td{kind}{hint}>{main}{rest}</td>"


def as_markdown(title: str, lead: str, blocks: Sequence[Block]) -> str:
    """The same for a repository's file view."""
    parts = [f"# {title}", lead]
    for block in blocks:
        match block:
            case Heading():
                parts.append(f"{'#' * block.level} {block.text}")
            case Text():
                parts.append(_plain(block.text))
            case Links():
                pass
            case Picture():
                parts.append(f"![{block.caption}]({block.file})")
            case Grid():
                parts.append(_markdown_grid(block))
    return "\n\n".join(part for part in parts if part) + "\n"


def _markdown_grid(grid: Grid) -> str:
    lines = [f"*{_plain(grid.caption)}*", ""] if grid.caption else []
    lines.append("| " + " | ".join(_plain(text) for text in grid.headers) + " |")
    lines.append("|" + "---|" * len(grid.headers))
    for row in grid.rows:
        lines.append("| " + " | ".join(map(_markdown_entry, row)) + " |")
    return "\n".join(lines)


def _markdown_entry(entry: Entry) -> str:
    main = f"**{_plain(entry.main)}**" if entry.bold and entry.main else _plain(entry.main)
    sign = {"yes": "≈ ", "no": "**≠** "}.get(entry.kind, "")
    return f"{main} {sign}{_plain(entry.rest)}".strip() if entry.rest else main


def _plain(text: str) -> str:
    """Markdown must not read anything into the text."""
    for sign in "\\|*_<":
        text = text.replace(sign, "\\" + sign)
    return text
