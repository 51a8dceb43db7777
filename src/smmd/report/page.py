"""A page of HTML in one file: no network, no server, readable in light and in dark."""

from __future__ import annotations

import base64
import html
import os
import re
from collections.abc import Sequence
from typing import Literal

from smmd import files

Tone = Literal["good", "warn", "bad"]

_STYLE = """
:root{color-scheme:light dark;--ink:#22303c;--soft:#5d6973;--line:#d5dade;--paper:#fff;
--wash:#f4f6f8;--good:#2e6b3a;--warn:#8a5a00;--bad:#a93226;--accent:#2f6690}
@media(prefers-color-scheme:dark){:root{--ink:#dde3e8;--soft:#9aa5ae;--line:#3a444c;
--paper:#14191d;--wash:#1d2429;--good:#7fc08d;--warn:#dfb35a;--bad:#ee8b80;--accent:#8ab9dc}
figure svg,figure img{background:#fff;border-radius:4px}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:62rem;padding:2rem 1.25rem 4rem;background:var(--paper);
color:var(--ink);font:16px/1.55 system-ui,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
h1{font-size:1.7rem;line-height:1.25;margin:0 0 .3rem}
h2{font-size:1.25rem;margin:2.4rem 0 .6rem;padding-top:.6rem;border-top:1px solid var(--line)}
h3{font-size:1.05rem;margin:1.6rem 0 .4rem}
p{margin:.5rem 0;max-width:46rem}.lead{color:var(--soft)}
a{color:var(--accent)}code{font:.9em ui-monospace,Menlo,Consolas,monospace}
.verdict{margin:1.2rem 0;padding:.8rem 1rem;border-left:4px solid var(--soft);
background:var(--wash);max-width:none;font-size:1.05rem}
.verdict.good{border-color:var(--good)}.verdict.warn{border-color:var(--warn)}
.verdict.bad{border-color:var(--bad)}
figure{margin:1.2rem 0}figure svg,figure img{max-width:100%;height:auto}
figcaption,caption{color:var(--soft);font-size:.9rem;text-align:left;margin:.3rem 0}
caption{caption-side:top}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.92rem;font-variant-numeric:tabular-nums}
th,td{padding:.22rem .7rem .22rem 0;border-bottom:1px solid var(--line);text-align:left;
vertical-align:top}
th{font-weight:600}td.number,th.number{text-align:right}
"""

_NUMBER = re.compile(r"[−+-]?[\d.,]+([e×][\d+−-]+)?\s*%?")


class Page:
    """A report under construction; every ``str`` argument is plain text unless it says HTML.

    >>> page = Page("A sample", lead="50 rows")
    >>> page.verdict("Not normal.", "bad")
    >>> page.table(["column", "p"], [["width", "0.03"]])
    >>> "Not normal." in page.render()
    True
    """

    def __init__(self, title: str, lead: str = "") -> None:
        self.title, self.lead = title, lead
        self._parts: list[str] = []
        self._styles: list[str] = [_STYLE]
        self._scripts: list[str] = []
        self._figures = 0

    def heading(self, text: str, level: int = 2, anchor: str = "") -> None:
        """A heading; ``anchor`` lets the page link to it."""
        name = f' id="{html.escape(anchor)}"' if anchor else ""
        self._parts.append(f"<h{level}{name}>{html.escape(text)}</h{level}>")

    def text(self, text: str) -> None:
        """A paragraph."""
        self._parts.append(f"<p>{html.escape(text)}</p>")

    def verdict(self, text: str, tone: Tone = "good") -> None:
        """The sentence a reader must not miss."""
        self._parts.append(f'<p class="verdict {tone}" role="status">{html.escape(text)}</p>')

    def figure(self, picture: bytes, caption: str = "", alt: str = "") -> None:
        """An SVG or PNG file's bytes as a figure inside the page."""
        self._figures += 1
        shown = html.escape(alt or caption or "figure", quote=True)
        if picture.startswith(b"\x89PNG"):
            data = base64.b64encode(picture).decode()
            image = f'<img alt="{shown}" src="data:image/png;base64,{data}">'
        else:
            image = _inline_svg(picture.decode(), shown, self._figures)
        words = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
        self._parts.append(f"<figure>{image}{words}</figure>")

    def table(
        self, headers: Sequence[str], rows: Sequence[Sequence[object]], caption: str = ""
    ) -> None:
        """A table; columns that hold only numbers are set flush right."""
        texts = [[str(cell) for cell in row] for row in rows]
        numeric = [
            bool(texts) and all(_NUMBER.fullmatch(row[k]) or not row[k] for row in texts)
            for k in range(len(headers))
        ]

        def line(cells: Sequence[str], tag: str) -> str:
            inside = "".join(
                f"<{tag}{' class=number' if right else ''}>{html.escape(cell)}</{tag}>"
                for cell, right in zip(cells, numeric, strict=True)
            )
            return f"<tr>{inside}</tr>"

        words = f"<caption>{html.escape(caption)}</caption>" if caption else ""
        body = "\n".join(line(row, "td") for row in texts)
        self._parts.append(
            f'<div class="scroll"><table>{words}<thead>{line(list(headers), "th")}</thead>\n'
            f"<tbody>{body}</tbody></table></div>"
        )

    def html(self, fragment: str) -> None:
        """A fragment of HTML as it is."""
        self._parts.append(fragment)

    def style(self, css: str) -> None:
        """More rules of style."""
        self._styles.append(css)

    def script(self, source: str) -> None:
        """A script that runs once the page is there."""
        self._scripts.append(source)

    def render(self) -> str:
        """The whole file."""
        lead = f'<p class="lead">{html.escape(self.lead)}</p>' if self.lead else ""
        scripts = "".join(f"<script>\n{_closed(s)}\n</script>\n" for s in self._scripts)
        body = "\n".join(self._parts)
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            # An empty icon: the browser need not ask for one that is not there.
            '<link rel="icon" href="data:,">\n'
            f"<title>{html.escape(self.title)}</title>\n<style>{''.join(self._styles)}</style>\n"
            f"</head>\n<body>\n<h1>{html.escape(self.title)}</h1>\n{lead}\n{body}\n{scripts}"
            "</body>\n</html>\n"
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file, whole or not at all."""
        files.atomic_write(path, self.render())


def _closed(script: str) -> str:
    """A script must not end its own element early."""
    return script.replace("</", "<\\/")


def _inline_svg(source: str, alt: str, number: int) -> str:
    """The svg element alone, its ids made its own, so that several can share a page."""
    element = source[source.index("<svg") :]
    element = re.sub(r'\bid="', f'id="f{number}-', element)
    element = re.sub(r'((?:xlink:)?href)="#', rf'\1="#f{number}-', element)
    element = element.replace("url(#", f"url(#f{number}-")
    return element.replace("<svg", f'<svg role="img" aria-label="{alt}"', 1)
