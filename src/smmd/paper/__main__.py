"""``python -m smmd.paper``: the reproduction with NumPy, SciPy and PyTorch alone.

What ``smmd reproduce`` does, for machines without the packages of the command line and of figures;
the page can be drawn elsewhere, from the results, with ``--page-only``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from smmd.paper import request


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m smmd.paper", description=__doc__)
    parser.add_argument("--out", default=request.FOLDER, help="folder of results and page")
    parser.add_argument("--full", action="store_true", help="all sizes, training included")
    parser.add_argument("--item", action="append", help="only this item (repeatable)")
    parser.add_argument("--no-training", action="store_true", help="leave out what trains")
    parser.add_argument("--list", action="store_true", help="name the items and stop")
    parser.add_argument("--page-only", action="store_true", help="write the page of stored results")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", help="data set for training")
    parser.add_argument("--data-dir", help="folder with its published files")
    parser.add_argument("--wae-seeds", type=int, help="so many auto-encoders of each version")
    parser.add_argument("--wae-epochs", type=int, help="shorter trainings of the auto-encoders")
    parser.add_argument("--runs", help="measure these runs of smmd train, instead of training")
    parser.add_argument("--device", help="cpu, cuda or cuda:1, ...")
    asked = parser.parse_args(arguments)
    if asked.list:
        print("\n".join(request.listing()))
        return 0
    try:
        if asked.page_only:
            print(request.page_only(asked.out))
            return 0
        if asked.runs:
            print(request.adopt(asked.out, asked.runs))
            return 0
        settings = request.settings(
            full=asked.full,
            seed=asked.seed,
            data=asked.data,
            data_dir=asked.data_dir,
            on=asked.device,
            wae_seeds=asked.wae_seeds,
            wae_epochs=asked.wae_epochs,
        )
        training = False if asked.no_training else None
        names = request.chosen(asked.item, asked.full, training)
        print(request.run(asked.out, names, settings, sys.stdout))
    except (ValueError, TypeError, ImportError, OSError, ArithmeticError, RuntimeError) as error:
        print(f"python -m smmd.paper: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
