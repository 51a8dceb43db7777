"""What `import smmd` needs, and what is said where an optional package is missing."""

import json
import os
import subprocess
import sys

import pytest

import smmd

ONLY = """
import json, sys, smmd
known = {name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names)
print(json.dumps(sorted(name for name in known if not name.startswith("_"))))
"""
WITHOUT = """
import sys
sys.modules[{package!r}] = None  # importing it raises ImportError
import numpy as np
import smmd
try:
    {statement}
except smmd.MissingExtra as error:
    print(error)
"""


def run(code):
    # Without what measures coverage, which would be among the imports.
    env = {name: v for name, v in os.environ.items() if not name.startswith("COVERAGE")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_smmd_imports_nothing_else():
    assert set(json.loads(run(ONLY))) <= {"numpy", "scipy", "array_api_compat", "smmd"}


@pytest.mark.parametrize(
    ("package", "statement", "extra"),
    [
        ("torch", "smmd.torch", "torch"),
        ("keras", "smmd.keras", "keras"),
        ("typer", "__import__('smmd.cli').cli.build_app()", "cli"),
        (
            "matplotlib",
            "smmd.normality_test(np.eye(9)[:, :2] + np.c_[:9, 9:0:-1] ** 2).plot()",
            "plot",
        ),
        ("pyarrow", "__import__('smmd.cli.tables').cli.tables.read(None)", "cli"),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(package, statement, extra):
    out = run(WITHOUT.format(package=package, statement=statement))
    assert f"needs the package {package!r}, which is not installed" in out
    assert f'pip install "smmd[{extra}]"' in out


def test_it_is_an_import_error():
    error = smmd.MissingExtra("This", "torch", "torch")
    assert isinstance(error, ImportError)
    assert (error.feature, error.extra, error.package) == ("This", "torch", "torch")


def test_unknown_names():
    with pytest.raises(AttributeError, match="module 'smmd' has no attribute 'mmd'"):
        smmd.mmd  # noqa: B018
    assert {*smmd.__all__, "torch", "keras", "wae", "sigreg"} <= set(dir(smmd))
    for name in smmd.__all__:
        assert getattr(smmd, name) is not None
