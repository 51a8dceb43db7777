# Everything runs in .venv; `make` alone lists what there is.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help demo test check lint types format docs clean

help:  ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.user: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable ".[train]"
	@touch $@

.venv/.dev: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable ".[dev]"
	@touch $@ .venv/.user

demo: .venv/.user  ## train on digits that ship with the package; ends in runs/.../report.html
	$(BIN)/smmd train

test: .venv/.dev  ## all tests with branch coverage, which must not fall
	$(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report=term:skip-covered --cov-fail-under=94

check: lint types test  ## everything CI asks for

lint: .venv/.dev  ## style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.dev  ## strict types
	$(BIN)/mypy

format: .venv/.dev  ## rewrite the code in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.venv/.docs: pyproject.toml constraints.txt | .venv/.dev
	$(PIP) --editable ".[dev,docs]"
	@touch $@

docs: .venv/.docs  ## the documentation as HTML, in docs/_build; a warning is an error
	$(BIN)/python -m sphinx -q -W --keep-going docs docs/_build

clean:  ## remove what was built
	rm -rf .venv docs/_build .pytest_cache .mypy_cache .ruff_cache .coverage
