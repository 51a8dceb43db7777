"""Reading SMMD² over batches: B on fresh ones, E in training, what code normalization changes."""

import numpy as np

import smmd

N, D = 128, 8


def main(batches: int = 200) -> dict[str, object]:
    rng = np.random.default_rng(0)
    fresh = smmd.monitor.Batch(N, D)  # codes as they are, or normalized by the population
    own = smmd.monitor.Batch(N, D, null="diagonal")  # normalized by their own batch
    b, e = smmd.BStatistic(batch=fresh), smmd.EStatistic(0.99, batch=own)
    naive, off = smmd.EStatistic(0.99), smmd.BStatistic(batch=fresh)
    for _ in range(batches):
        z = rng.standard_normal((N, D))
        b.update(smmd.smmd(z))
        e.update(smmd.smmd(smmd.standardize(z)))  # a training loss with CodeNorm
        naive.update(smmd.smmd(smmd.standardize(z)))
        off.update(smmd.smmd(z + [0.2, *(D - 1) * [0.0]]))
    for title, statistic in {
        "validation": b,
        "training, normalized by batch": e,
        "the same, read without saying so": naive,
        "validation, one mean off by 0.2": off,
    }.items():
        print(f"{title}:\n  {statistic.verdict()}")
    print("one batch:", fresh.verdict(1.5), sep="\n  ")
    low, high = b.exact_band()
    print(f"exact band of B: [{low:.3f}, {high:.3f}], three sigmas: {3 / batches**0.5:.3f}")
    print("for a logger:", b.as_dict("val/"))
    return {"b": b, "e": e, "naive": naive, "off": off}


if __name__ == "__main__":
    main()
