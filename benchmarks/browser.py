"""A report opened in a real browser: no console error, and the explorer answers.

    python -m benchmarks.browser runs/digits/report.html --screenshots /tmp/shots

Needs Chromium (or Chrome, or the path of one in ``CHROMIUM``) and nothing else: the browser is
driven through its own debugging pipe.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 60.0


def find() -> str | None:
    """The browser's path, or None."""
    asked = os.environ.get("CHROMIUM")
    return asked or next(filter(None, map(shutil.which, NAMES)), None)


class Tab:
    """One page, through the DevTools protocol: JSON messages, each ended by a zero byte."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write
        self._rest, self._number = b"", 0
        self._session: str | None = None
        #: What the page complained about: console errors, uncaught exceptions, failed requests.
        self.complaints: list[str] = []
        #: Every address the page asked for.
        self.requests: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method and wait for its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(0.0, end - time.monotonic()))
            data = os.read(self._read, 1 << 20) if ready else b""
            if not data:
                raise TimeoutError("the browser does not answer")
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        parsed: dict[str, Any] = json.loads(message)
        return parsed

    def _note(self, event: dict[str, Any]) -> None:
        method, values = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            detail = values["exceptionDetails"]
            self.complaints.append(detail.get("exception", {}).get("description", detail["text"]))
        elif method == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning"):
            words = [str(a.get("value", a.get("description"))) for a in values["args"]]
            self.complaints.append(" ".join(words))
        elif method == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
            self.complaints.append(values["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])
        elif method == "Network.loadingFailed":
            self.complaints.append(f"a request failed: {values['errorText']}")

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression; promises are waited for."""
        found = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(f"{script}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait(self, script: str) -> None:
        """Wait until a JavaScript expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.run(script):
            if time.monotonic() > end:
                raise TimeoutError(f"never true: {script}")
            time.sleep(0.02)

    def open(self, path: Path, *, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        """Show a file."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.send("Page.navigate", url=path.resolve().as_uri())
        self.wait("document.readyState === 'complete'")

    def mouse(self, kind: str, x: float, y: float, button: str = "left") -> None:
        """``kind`` is mousePressed, mouseMoved or mouseReleased."""
        held = 0 if kind == "mouseReleased" else 1
        self.send(
            "Input.dispatchMouseEvent",
            type=kind, x=x, y=y, button=button, buttons=held, clickCount=1,
        )  # fmt: skip

    def touch(self, kind: str, *points: tuple[float, float]) -> None:
        """``kind`` is touchStart, touchMove or touchEnd."""
        where = [{"x": x, "y": y} for x, y in points]
        self.send("Input.dispatchTouchEvent", type=kind, touchPoints=where)

    def key(self, key: str, *, shift: bool = False) -> None:
        """Press and let go of a key."""
        for kind in ("keyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, modifiers=8 if shift else 0
            )

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """The page as a PNG."""
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        if whole:
            size = self.send("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
            shot = self.send(
                "Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip
            )
        path.write_bytes(base64.b64decode(shot["data"]))


#: The browser reads from descriptor 3 and writes to 4.  Another process puts the pipes there:
#: Python code between fork and exec of this one is not safe beside threads.
HAND_OVER = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for place, end in zip((3, 4), ends):
    os.dup2(end, place)
os.execvp(sys.argv[3], sys.argv[3:])
"""


@contextmanager
def browser() -> Iterator[Tab]:
    """A fresh headless browser with one empty page."""
    program = find()
    if program is None:
        raise RuntimeError(f"no browser found: install one of {', '.join(NAMES)} or set CHROMIUM")
    (their_read, our_write), (our_read, their_write) = os.pipe(), os.pipe()

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [
                sys.executable, "-c", HAND_OVER, str(their_read), str(their_write),
                program, "--headless=new", "--remote-debugging-pipe", "--no-sandbox",
                "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                "--disable-background-networking", "--disable-component-update",
                f"--user-data-dir={profile}",
            ],
            pass_fds=(their_read, their_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(their_read)
        os.close(their_write)
        try:
            yield Tab(our_read, our_write)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(our_read)
            os.close(our_write)


def explorer_state(tab: Tab) -> tuple[float, float]:
    """Where the explorer stands."""
    tab.run("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")
    where = tab.run("[explorer.dataset.x, explorer.dataset.y].map(Number)")
    return where[0], where[1]


def picture_of(tab: Tab) -> str:
    """The explorer's image in the decoder's own pixels, as a data URI."""
    text: str = tab.run("explorer.blended.toDataURL()")
    return text


def pad_box(tab: Tab) -> tuple[float, float, float, float]:
    """Left, top, width and height of the explorer's plane, scrolled into view."""
    tab.run("document.getElementById('ex-pad').scrollIntoView({block: 'center'})")
    box = tab.run(
        "(() => { const b = document.getElementById('ex-pad').getBoundingClientRect();"
        " return [b.left, b.top, b.width, b.height]; })()"
    )
    return box[0], box[1], box[2], box[3]


def check_explorer(tab: Tab) -> list[str]:
    """Drag, touch, press keys and choose axes; what went wrong, in words."""
    problems: list[str] = []

    def expect(fine: bool, what: str) -> None:
        if not fine:
            problems.append(what)

    tab.wait("explorer.dataset.x !== undefined")
    line = tab.run("explorer.classList.contains('ex-line')")
    start, key = tab.run("[document.getElementById('ex-start').value, explorer.dataset.wanted]")
    expect(key.startswith(f"{start}:"), f"the menu says start {start}, the plane is {key}")
    left, top, width, height = pad_box(tab)
    first = (explorer_state(tab), picture_of(tab))
    middle = (left + width / 2, top + height / 2)
    tab.mouse("mousePressed", *middle)
    for share in (0.1, 0.2, 0.3):
        tab.mouse("mouseMoved", middle[0] + share * width, middle[1] - share * height)
    tab.mouse("mouseReleased", middle[0] + 0.3 * width, middle[1] - 0.3 * height)
    dragged = (explorer_state(tab), picture_of(tab))
    expect(dragged[0][0] > 1.0, f"a drag to the right leads to x = {dragged[0][0]}")
    expect(line or dragged[0][1] > 1.0, f"a drag upwards leads to y = {dragged[0][1]}")
    expect(dragged[1] != first[1], "the image does not follow the mouse")
    tab.mouse("mouseMoved", *middle)
    expect(explorer_state(tab) == dragged[0], "the plane follows a mouse whose button is up")
    for key, axis, sign in (
        ("ArrowLeft", 0, -1), ("ArrowDown", 1, -1), ("ArrowRight", 0, 1), ("ArrowUp", 1, 1),
    ):  # fmt: skip
        before = (explorer_state(tab), picture_of(tab))
        tab.key(key)
        after = (explorer_state(tab), picture_of(tab))
        if line and axis == 1:
            continue
        moved = sign * (after[0][axis] - before[0][axis])
        expect(abs(moved - 0.1) < 1e-6, f"{key} moves by {moved}")
        expect(after[1] != before[1], f"the image does not follow {key}")
    before_shift = explorer_state(tab)
    tab.key("ArrowLeft", shift=True)
    moved = before_shift[0] - explorer_state(tab)[0]
    expect(abs(moved - 0.5) < 1e-6, f"Shift+ArrowLeft moves by {moved}")
    tab.key("Home")
    expect((explorer_state(tab), picture_of(tab)) == first, "Home does not lead back")
    tab.touch("touchStart", middle)
    tab.touch("touchMove", (middle[0] - 0.25 * width, middle[1]))
    tab.touch("touchEnd")
    expect(explorer_state(tab)[0] < -1.0, "the plane does not answer to touch")
    if not line:
        count = tab.run("document.getElementById('ex-a').options.length")
        for a in range(count):
            tab.run(
                f"(() => {{ const s = document.getElementById('ex-a'); s.value = '{a}';"
                " s.dispatchEvent(new Event('change')); })()"
            )
            tab.wait("explorer.dataset.key === explorer.dataset.wanted")
            pair = tab.run("['ex-a', 'ex-b'].map(i => document.getElementById(i).value)")
            expect(pair[0] == str(a) != pair[1], f"choosing axis {a} gives the pair {pair}")
    return problems


def check(path: Path, shots: Path | None = None) -> list[str]:
    """Everything that is wrong with a report; screenshots are taken on the way."""
    with browser() as tab:
        tab.open(path)
        problems = check_explorer(tab)
        if shots:
            shots.mkdir(parents=True, exist_ok=True)
            tab.open(path)
            tab.wait("explorer.dataset.x !== undefined")
            tab.screenshot(shots / "light.png")
            tab.open(path, dark=True)
            tab.wait("explorer.dataset.x !== undefined")
            tab.screenshot(shots / "dark.png")
        tab.open(path, width=390, height=800)
        tab.wait("explorer.dataset.x !== undefined")
        overflow = tab.run("document.documentElement.scrollWidth - window.innerWidth")
        if overflow > 0:
            problems.append(f"on a phone the page is {overflow} pixels too wide")
        if shots:
            tab.screenshot(shots / "phone.png")
        fetched = [url for url in tab.requests if not url.startswith(("file:", "data:", "about:"))]
        problems += [f"the page asks for {url}" for url in fetched] + tab.complaints
    return problems


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("report", type=Path)
    parser.add_argument("--screenshots", type=Path, help="a folder for pictures of the page")
    options = parser.parse_args()
    problems = check(options.report, options.screenshots)
    size = options.report.stat().st_size / 1e6
    print(f"{options.report}: {size:.2f} MB, {len(problems)} problems")
    for problem in problems:
        print("  " + problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
