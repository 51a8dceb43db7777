"""Draw the pictures of docs/testing.md.  `python docs/testing.py`"""

from __future__ import annotations

import warnings
from pathlib import Path

from sklearn.datasets import load_iris

import smmd
from smmd.figures import encode
from smmd.normality import TiesWarning


def main() -> None:
    iris = load_iris(as_frame=True).data
    iris.columns = [name.removesuffix(" (cm)") for name in iris.columns]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TiesWarning)
        found = {"test": smmd.normality_test(iris), "diagnosis": smmd.diagnose(iris)}
    for name, result in found.items():
        path = Path(__file__).parent / "images" / f"{name}.svg"
        path.write_bytes(encode(result.plot())["svg"])


if __name__ == "__main__":
    main()
