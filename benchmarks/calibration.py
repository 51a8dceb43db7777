"""The true level of every null law, by simulation: where p-values can be trusted.

    python -m benchmarks.calibration                      # the whole grid, 100,000 a cell
    python -m benchmarks.calibration --device cuda --samples 800000 --seconds 80
    python -m benchmarks.calibration --n 50 --d 4 --seed 7    # one cell with a seed of your own
    python -m benchmarks.calibration --samples 0 --write  # tables of what is there; rewrite the
                                                          # committed CSV and docs/calibration.md

Samples are drawn in parts that are kept in --store as they are finished: stop at any time and
start again.  One core draws 100,000 samples in some 20 s at n = 20, 2 min at n = 100 and about an
hour at n = 1000, for each d.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from benchmarks import _calibration_store as store

GRID_N = (20, 50, 100, 1000)
GRID_D = (1, 2, 4, 8, 16, 32, 64)
SEED = 20_190_108
RESULTS = Path(__file__).parent / "results"


def jobs(args: argparse.Namespace) -> list[tuple[int, int, int]]:
    """(part, n, d), part by part over the whole grid, so that an early stop leaves it balanced."""
    found = []
    for n in args.n:
        parts = range(-(-args.samples // store.part_size(n, args.device)))
        found += [(k, n, d) for d in args.d for k in parts]
    return sorted(found)


def simulate(args: argparse.Namespace) -> None:
    begun = time.monotonic()
    slowest: dict[int, float] = {}
    for k, n, d in jobs(args):
        if store.path(args.store, n, d, args.seed, k).exists():
            continue
        spent = time.monotonic() - begun
        if args.seconds and spent + 1.3 * slowest.get(n, 0.0) > args.seconds:
            continue
        start = time.monotonic()
        store.simulate(args.store, n, d, args.seed, k, args.device)
        took = time.monotonic() - start
        slowest[n] = max(slowest.get(n, 0.0) if k else 0.0, took)
        size = store.part_size(n, args.device)
        print(f"n={n} d={d} part {k}: {size:,} samples in {took:.1f} s", flush=True)
    print(f"simulated for {time.monotonic() - begun:.0f} s", flush=True)


def check(args: argparse.Namespace) -> None:
    """The simulation beside the library, on a few samples of every n."""
    try:
        import smmd  # noqa: F401
    except ImportError as error:
        print(f"not compared with smmd, which does not import here: {error}")
        return
    for n in args.n:
        for d in (min(args.d), max(args.d)):
            worst = store.null_values.check(n, d, args.seed, args.device)
            name = max(worst, key=lambda key: worst[key])
            print(f"n={n} d={d}: largest difference from smmd {worst[name]:.1e} ({name})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, nargs="+", default=list(GRID_N))
    parser.add_argument("--d", type=int, nargs="+", default=list(GRID_D))
    parser.add_argument("--samples", type=int, default=100_000, help="in each cell")
    parser.add_argument("--seconds", type=float, default=0.0, help="stop simulating after these")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--device", default="cpu", choices=list(store.PARTS))
    parser.add_argument("--store", type=Path, default=Path("runs/calibration"))
    parser.add_argument("--check", action="store_true", help="compare with smmd first")
    parser.add_argument("--no-tables", action="store_true", help="simulate only")
    parser.add_argument("--write", action="store_true", help="rewrite the committed CSV and page")
    args = parser.parse_args()
    if args.check:
        check(args)
    simulate(args)
    if not args.no_tables:
        from benchmarks import _calibration_levels as levels

        levels.report(args.store, args.n, args.d, args.seed, write=args.write)


if __name__ == "__main__":
    main()
