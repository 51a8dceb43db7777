"""``smmd threshold``: the paper's table for any n, d and kernel."""

import json

import pytest

import smmd


def test_the_papers_cell(run):
    found = run("threshold", "-n", 100, "-d", 8, "--null", "diagonal", "--alpha", 0.05)
    assert found.status == 0
    assert "threshold  0.3530" in found.out  # printed in the paper: 0.34, from simulation
    assert "n = 100, d = 8, centred and scaled column by column" in found.out
    assert "nothing simulated" in found.out
    assert "in 5 % of cases" in found.out


def test_json_is_what_python_gives(run):
    options = ["--scale", "1/16", "--null", "normal", "--alpha", 0.01, "--json"]
    result = json.loads(run("threshold", "-n", 200, "-d", 5, *options).out)
    kernel = smmd.Gaussian(1 / 16)
    assert result["threshold"] == smmd.threshold(200, 5, 0.01, null="normal", kernel=kernel)
    assert result["method"] == "analytic"
    assert result["standard_error"] is None
    assert result["notes"] == []


def test_simulation_carries_its_error(run):
    result = json.loads(
        run(
            "threshold", "-n", 30, "-d", 2, "--method", "monte-carlo", "--resamples", 999, "--json"
        ).out
    )
    assert result["method"] == "monte-carlo"
    assert result["n_resamples"] == 999
    exact = smmd.threshold(30, 2)
    assert 0.02 < result["standard_error"] < 0.3
    assert abs(result["threshold"] - exact) < 4 * result["standard_error"]


def test_where_the_law_does_not_hold_it_is_simulated_and_said(run):
    found = run("threshold", "-n", 12, "-d", 8, "--null", "normal", "--resamples", 199)
    assert found.status == 0
    assert "199 simulated samples" in found.out
    assert " ± " in found.out
    assert "Simulated, because the analytic law does not hold here: n = 12 is below" in found.out


def test_help_teaches(run):
    text = run("threshold", "--help").out
    for word in ("code normalization", "whitened", "Examples", "monte-carlo", "skewed"):
        assert word in text


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["-n", 100, "-d", 8, "--alpha", 2], "alpha must lie between 0 and 1, got 2"),
        (["-n", 1, "-d", 8], "n must be at least 2, got 1"),
        (["-n", 8, "-d", 8, "--null", "normal"], "n must be at least 10 for null 'normal'"),
        (["-n", 100, "-d", 0], "d must be at least 1, got 0"),
        (["-n", 100, "-d", 8, "--scale", 1, "--gamma", 2], "exclude each other"),
        (
            ["-n", 20, "-d", 1, "--method", "monte-carlo", "--resamples", 19, "--alpha", 0.001],
            "raise --resamples",
        ),
    ],
)
def test_mistakes_end_in_one_line(run, options, complaint):
    found = run("threshold", *options)
    assert found.status == 2
    assert complaint in found.err
    assert "Traceback" not in found.err
