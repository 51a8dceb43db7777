"""What the documentation shows runs, and what it names exists."""

from __future__ import annotations

import doctest
import importlib
import re
import shlex
import tomllib
from functools import cache
from pathlib import Path

import pytest
import typer.main

import smmd
from smmd import cli

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "smmd"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/reproduction/*.md")])
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def named(page):
    return str(page.relative_to(ROOT))


def text_of(page):
    return page.read_text(encoding="utf-8")


def blocks(page, language):
    """(line, code) of every block in ``language``."""
    text = text_of(page)
    return [
        (text.count("\n", 0, found.start(2)) + 1, found[2])
        for found in FENCE.finditer(text)
        if found[1] == language
    ]


def prose(page):
    """The page without its fenced blocks."""
    return FENCE.sub("", text_of(page))


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=named)
def test_snippets_run(page, tmp_path, monkeypatch):
    """A page's blocks, from top to bottom, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SMMD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    variables = {"__name__": "__main__"}
    for line, code in blocks(page, "python"):
        # Empty lines before it give a traceback the page's own line numbers.
        exec(compile("\n" * (line - 1) + code, named(page), "exec"), variables)


def modules_with_examples():
    for path in sorted(SOURCE.rglob("*.py")):
        if ">>> " in path.read_text(encoding="utf-8"):
            yield ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)


@pytest.mark.parametrize("module", list(modules_with_examples()))
def test_examples_in_docstrings(module, tmp_path, monkeypatch):
    monkeypatch.setenv("SMMD_CACHE_DIR", str(tmp_path))
    found = importlib.import_module(module)
    outcome = doctest.testmod(found, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.attempted
    assert not outcome.failed


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page):
    for target in LINK.findall(prose(page)):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{named(page)} links to {target}"
        if anchor:
            assert anchor in anchors(file), f"{named(page)} links to {target}"


def anchors(page):
    """Headings as GitHub and MyST name them."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@cache
def verbs():
    """Each verb's options, as the command line itself knows them."""
    app = typer.main.get_command(cli.build_app())
    return {
        name: {option for parameter in command.params for option in parameter.opts}
        for name, command in app.commands.items()
    }


def commands(page):
    """Lines of shell blocks, and code in prose that looks like a command."""
    lines = [line for _, code in blocks(page, "sh") for line in code.splitlines()]
    lines += re.findall(r"`((?:smmd|make|python -m|python) [^`]+)`", prose(page))
    for line in lines:
        words = shlex.split(line.replace("...", ""), comments=True)
        while words and (words[0] == "$" or "=" in words[0]):
            words = words[1:]
        if words:
            yield line, words


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_exist(page):
    targets = re.findall(r"^([a-z]+):", text_of(ROOT / "Makefile"), re.MULTILINE)
    for line, words in commands(page):
        where = f"{named(page)}: {line}"
        if words[0] == "smmd" and words[1][0] != "-":
            assert words[1] in verbs(), where
            for word in words[2:]:
                if word.startswith("--") and word != "--help":
                    assert word.partition("=")[0] in verbs()[words[1]], where
        elif words[0] == "make":
            assert set(words[1:]) <= set(targets), where
        elif words[:2] == ["python", "-m"] and words[2].split(".")[0] in ("benchmarks", "smmd"):
            inside = SOURCE.parent if words[2].startswith("smmd") else ROOT
            path = inside.joinpath(*words[2].split("."))
            assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), where
        elif words[0] == "python" and words[1].endswith(".py"):
            assert (ROOT / words[1]).exists(), where


def test_readme_has_exactly_two_set_up_commands():
    readme = text_of(ROOT / "README.md")
    marked = re.search(r"<!-- setup -->(.*?)<!-- /setup -->", readme, re.DOTALL)
    assert marked
    assert len(re.findall(r"^make ", marked[1], re.MULTILINE)) == 2
    assert len(re.findall(r"^\w", marked[1], re.MULTILINE)) == 2


def test_every_page_is_in_the_contents():
    contents = text_of(ROOT / "docs" / "index.md")
    for page in ROOT.glob("docs/*.md"):
        if page.stem != "index":
            assert re.search(rf"^{page.stem}$", contents, re.MULTILINE), page.stem


def test_every_folder_of_tests_is_explained():
    explained = set(re.findall(r"`tests/(\w+)/`", text_of(ROOT / "CONTRIBUTING.md")))
    folders = {path.parent.name for path in ROOT.glob("tests/*/test_*.py")}
    assert explained == folders


def test_every_room_is_on_the_plan():
    plan = text_of(ROOT / "ARCHITECTURE.md")
    for path in SOURCE.iterdir():
        if path.suffix == ".py" and not path.stem.startswith("_"):
            assert f"`{path.name}`" in plan, path.name
        elif (path / "__init__.py").exists():
            assert f"`{path.name}/`" in plan, path.name


def test_versions_agree():
    project = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]
    citation = text_of(ROOT / "CITATION.cff")
    assert project["version"] == smmd.__version__
    assert re.search(rf"^version: {re.escape(smmd.__version__)}$", citation, re.MULTILINE)
