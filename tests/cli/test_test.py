"""``smmd test`` as a user meets it: verdicts, groups, reports, exit statuses, hostile files."""

import gzip
import json
import os
import re
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import smmd

RNG = np.random.default_rng(20260109)
NORMAL = RNG.normal(5.0, 2.0, (120, 3))
SKEWED = np.column_stack([NORMAL[:, 0], RNG.exponential(size=120), NORMAL[:, 2]])


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SMMD_CACHE_DIR", str(tmp_path / "nulls"))


def csv(path, values, names="abc", ending="\n"):
    lines = [",".join(names), *(",".join(map(repr, map(float, row))) for row in values)]
    path.write_text(ending.join(lines), encoding="utf-8")
    return path


def test_the_shipped_sample(run):
    done = run("test")
    assert done.status == 0
    assert done.err == ""
    assert "iris.csv (ships with smmd)" in done.out
    assert "Left out as not numeric: species" in done.out
    assert "Normality is rejected at the 5 % level" in done.out


def test_groups_are_adjusted_for_their_number(run):
    done = run("test", "--group-by", "species", "--statistic", "henze-zirkler", "--json")
    found = json.loads(done.out)
    assert [g["group"] for g in found["groups"]] == ["setosa", "versicolor", "virginica"]
    # R: Henze–Zirkler of iris by species.
    assert [g["statistic"] for g in found["groups"]] == pytest.approx(
        [0.9488453160, 0.8388008907, 0.7570095243], abs=1e-9
    )
    assert found["groups"][0]["pvalue"] == pytest.approx(0.0499535562, abs=1e-9)
    assert found["groups"][0]["pvalue_adjusted"] == pytest.approx(3 * 0.0499535562, abs=1e-8)
    assert not found["groups"][0]["rejected"]
    text = run("test", "--group-by", "species").out
    assert "in 3 groups by species" in text
    assert "rejected in none of 3 groups" in text


def test_exit_status(run, tmp_path):
    bad = csv(tmp_path / "bad.csv", SKEWED)
    good = csv(tmp_path / "good.csv", NORMAL)
    assert run("test", bad).status == 0
    assert run("test", bad, "--fail-if-rejected").status == 3
    assert run("test", good, "--fail-if-rejected").status == 0
    assert run("test", "--group-by", "species", "--fail-if-rejected").status == 0


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "parquet", "npy", "npz", "columns.npz"])
def test_every_kind_of_file(run, tmp_path, kind):
    path = tmp_path / f"x.{kind}"
    if kind == "csv":
        csv(path, SKEWED, ending="\r\n")
    elif kind == "csv.gz":
        plain = csv(tmp_path / "plain.csv", SKEWED).read_bytes()
        path.write_bytes(gzip.compress(plain))
    elif kind == "tsv":
        path.write_text(csv(tmp_path / "x.csv", SKEWED).read_text().replace(",", "\t"))
    elif kind == "parquet":
        pyarrow.parquet.write_table(pa.table(dict(zip("abc", SKEWED.T, strict=True))), path)
    elif kind == "npy":
        np.save(path, SKEWED)
    elif kind == "npz":
        np.savez(path, x=SKEWED)
    else:
        np.savez(path, **dict(zip("abc", SKEWED.T, strict=True)))
    found = json.loads(run("test", path, "--json").out)
    expected = smmd.normality_test(SKEWED)
    assert found["statistic"] == expected.statistic
    assert found["pvalue"] == expected.pvalue
    assert found["names"] == (["0", "1", "2"] if kind in ("npy", "npz") else ["a", "b", "c"])


def test_options_reach_the_test(run, tmp_path):
    path = csv(tmp_path / "x.csv", SKEWED)
    done = run("test", path, "--columns", "b,c", "--null", "diagonal", "--statistic", "bhep",
               "--scale", "1/2", "--alpha", "0.01", "--json")  # fmt: skip
    found = json.loads(done.out)
    expected = smmd.normality_test(
        SKEWED[:, 1:], "diagonal", statistic="bhep", kernel=smmd.Gaussian(0.5), alpha=0.01
    )
    assert found["statistic"] == expected.statistic
    assert found["threshold"] == expected.threshold
    assert found["names"] == ["b", "c"]
    simulated = run("test", path, "--method", "monte-carlo", "--resamples", "99", "--seed", "1",
                    "--json")  # fmt: skip
    assert json.loads(simulated.out)["n_resamples"] == 99


def test_diagnose_tells_which_column(run, tmp_path):
    path = csv(tmp_path / "x.csv", SKEWED, names=("left", "wrong", "right"))
    done = run("test", path, "--diagnose")
    assert re.search(r"wrong +\S+ +\S+ +\S+ +not normal", done.out)
    found = json.loads(run("test", path, "--diagnose", "--json").out)
    assert [c["rejected"] for c in found["diagnosis"]["columns"]] == [False, True, False]


def test_missing_values(run, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "\n".join(f"{x},{y}" for x, y in NORMAL[:, :2]) + "\n,3\nNA,1\n")
    refused = run("test", path)
    assert refused.status == 2
    assert "column 'a', in 2 of 122 rows" in refused.err
    assert "--nan-policy omit" in refused.err
    taken = run("test", path, "--nan-policy", "omit")
    assert "2 of 122 rows left out" in taken.out


def test_spans(run, tmp_path):
    twice = csv(tmp_path / "x.csv", np.column_stack([NORMAL, NORMAL[:, 0]]), names="abcd")
    refused = run("test", twice)
    assert refused.status == 2
    assert "'d' repeats 'a'" in refused.err
    assert "--rank-deficient project" in refused.err
    assert "Projected to the 3 dimensions" in run("test", twice, "--rank-deficient", "project").out


def test_groups_that_cannot_be_tested_are_named(run, tmp_path):
    path = tmp_path / "x.csv"
    rows = [f"{x},{y},{'big' if k < 118 else 'small'}" for k, (x, y, _) in enumerate(NORMAL)]
    path.write_text("a,b,size\n" + "\n".join(rows))
    done = run("test", path, "--group-by", "size")
    assert done.status == 0
    assert "Not tested: group 'small' has n=2 rows" in done.out
    path.write_text("a,size\n1,x\n2,y\n3,z\n")
    assert "no group could be tested" in run("test", path, "--group-by", "size").err


class _Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.text = [], []

    def handle_starttag(self, tag, attrs):
        self.links += [v for k, v in attrs if k in ("src", "href", "xlink:href") and v]

    def handle_data(self, data):
        self.text.append(data)


def read(path):
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page, " ".join("".join(page.text).split())


def test_the_report_is_one_file_with_everything(run, tmp_path):
    x = NORMAL.copy()
    x[11] = [14.0, -4.0, 14.0]
    names = ("<b>x</b>", "y & z", "plain")
    done = run("test", csv(tmp_path / "x.csv", x, names), "--report", tmp_path / "r.html")
    assert done.status == 0
    assert "The report is in" in done.out
    page, text = read(tmp_path / "r.html")
    assert all(link.startswith(("#", "data:")) for link in page.links)
    assert "http" not in "".join(page.links)
    assert "<b>x</b>" in text  # as text: a column's name is no markup
    for part in ("Is x.csv normally distributed?", "Columns", "Directions", "Far rows",
                 "Row 11 lies farther out", "How to read this"):  # fmt: skip
        assert part in text
    raw = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert raw.count("<svg") == 2


def test_the_report_of_groups(run, tmp_path):
    run("test", "--group-by", "species", "--report", tmp_path / "r.html", "--json")
    _, text = read(tmp_path / "r.html")
    assert "Normality is not rejected in any group" in text
    assert "Taken alone: Normality is rejected" in text
    assert run("test", "--report", tmp_path).status == 2


HOSTILE = {
    "empty.csv": (b"", "is empty"),
    "blank.csv": (b"\n\n\n", "could not be read as CSV"),
    "garbage.csv": (bytes(RNG.integers(0, 256, 4000, dtype=np.uint8)), "could not be read as CSV"),
    "ragged.csv": (b"a,b\n1,2\n3\n4,5,6\n", "Expected 2 columns, got 1"),
    "quote.csv": (b'a,b\n"1,2\n3,4\n', "could not be read as CSV"),
    "header.csv": (b"a,b\n", "has columns but no rows"),
    "twice.csv": (b"a,a\n1,2\n2,3\n4,9\n", "several columns are called 'a'"),
    "latin.csv": ("n\u00e4me,b\n1,2\n3,4\n".encode("latin-1"), "save it as UTF-8"),
    "utf16.csv": ("a,b\n1,2\n3,4\n".encode("utf-16"), "could not be read as CSV"),
    "text.csv": (b"word\none\ntwo\n", "no numeric columns"),
    "mixed.csv": (b"a,b\n" + b"1,2\n2,5\n3,1\n" * 9 + b"4,oops\n", "column 'b' holds numbers, but"),
    "huge.csv": (b"a,b\n" + b"".join(b"1%030d,%d\n" % (k, k * k) for k in range(40)), "constant"),
    "one.csv": (b"a,b\n1,2\n", "n=1 rows"),
    "infinite.csv": (b"a,b\n" + b"1,2\n2,7\n3,inf\n" * 9, "infinite values in column 'b'"),
    "wide.csv": (b",".join(b"c%d" % k for k in range(30)) + b"\n"
                 + b"\n".join(b",".join(b"%d" % ((7 * i * j + i) % 11) for j in range(30))
                              for i in range(9)), "at least d+2=32 rows are needed"),
    "no.ending": (b"1,2", "the ending '.ending' is not one of"),
    "broken.npy": (b"\x93NUMPY\x01\x00garbage", "could not be read as NPY"),
    "broken.npz": (b"PK\x03\x04garbage", "could not be read as NPZ"),
    "broken.parquet": (b"PAR1garbage", "could not be read as PARQUET"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_get_one_line(run, tmp_path, name):
    content, message = HOSTILE[name]
    path = tmp_path / name
    path.write_bytes(content)
    done = run("test", path)
    assert done.status == 2
    assert done.out == ""
    assert done.err.startswith("smmd: error: ")
    assert done.err.count("\n") == 1
    assert message in done.err
    assert done.err.strip().isprintable()
    assert "Traceback" not in done.err


def test_folders_missing_files_and_unwritable_reports(run, tmp_path):
    assert "is a folder" in run("test", tmp_path).err
    assert "there is no such file" in run("test", tmp_path / "x.csv").err
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert run("test", "--report", blocked / "r.html").status == 2


def test_decimal_commas(run, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a;b\n" + "\n".join(f"{x};{y}".replace(".", ",") for x, y, _ in NORMAL))
    found = json.loads(run("test", path, "--json").out)
    assert found["statistic"] == pytest.approx(smmd.normality_test(NORMAL[:, :2]).statistic)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--alpha", "2"], "alpha must lie between 0 and 1"),
        (["--null", "standard", "--statistic", "henze-zirkler"], "use --statistic smmd"),
        (["--group-by", "colour"], "there is no column 'colour'"),
        (["--columns", "species"], "not numeric"),
        (["--null", "gauss"], "gauss"),
        (["--method", "monte-carlo", "--resamples", "3"], "at least 19"),
    ],
)
def test_impossible_options(run, options, message):
    done = run("test", *options)
    assert done.status == 2
    assert message in done.err


def test_help_names_the_options(run):
    text = run("test", "--help").out
    for option in ("--columns", "--group-by", "--alpha", "--null", "--statistic", "--kernel",
                   "--scale", "--method", "--json", "--report", "--fail-if-rejected"):  # fmt: skip
        assert option in text
    assert os.environ["SMMD_CACHE_DIR"]
