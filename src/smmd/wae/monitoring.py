"""From what an epoch measured to a line of the log: losses, threshold, E- and B-statistic."""

from __future__ import annotations

from typing import Any

import numpy as np

from smmd.monitor import BStatistic, EStatistic
from smmd.nulls import law_for
from smmd.wae import schedule
from smmd.wae.config import Config
from smmd.wae.loop import Validation, kernel

#: The paper's liberal threshold, where no law is known.
RULE_OF_THUMB = 2.0
REMEDY = "lower the learning rate, or the penalty's weight"


class Monitor:
    """One seed's statistics over the whole run.

    A training batch normalized by its own mean and variance has another null law than a batch
    normalized by running statistics: lower, with another threshold.  The E-statistic counts each
    training batch in standard deviations from the mean of its own law, so that the usual band
    holds.  The B-statistic is of held-out batches, where nothing needs correcting.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.e = EStatistic()
        self.mean, self.sd, self.threshold = 0.0, 1.0, RULE_OF_THUMB
        if config.version == "code-norm":
            found = law_for(kernel(config), "diagonal", config.batch, config.latent)
        else:
            found = law_for(kernel(config), "standard", config.batch, config.latent)
        if found.law is not None and not config.random:
            self.mean, self.sd = found.law.mean, found.law.sd
            self.threshold = float(found.law.isf(0.05))

    def row(
        self, epoch: int, measured: np.ndarray, validation: Validation, seconds: float
    ) -> dict[str, Any]:
        """The log's line for an epoch; ``measured`` holds each step's MSE and SMMD²."""
        for value in measured[:, 1].tolist():
            self.e.update((value - self.mean) / self.sd)
        b = BStatistic()
        for value in validation.smmd:
            b.update(value)
        mse, smmd = measured.astype(np.float64).mean(axis=0).tolist()
        return {
            "epoch": epoch,
            "rate": schedule.rate(self.config.stages, epoch),
            "loss": mse + self.config.weight * smmd,
            "mse": mse,
            "smmd": smmd,
            "smmd_last": float(measured[-1, 1]),
            "threshold": self.threshold,
            "e": self.e.value,
            "e_low": self.e.band()[0],
            "e_high": self.e.band()[1],
            "val_mse": validation.mse,
            "b": b.value,
            "b_low": b.band()[0],
            "b_high": b.band()[1],
            "b_batches": b.count,
            "seconds": seconds,
        }

    def state(self) -> dict[str, Any]:
        """What a resumed run needs."""
        return {"e": {"count": self.e.count, "value": self.e.value}}

    def restore(self, state: dict[str, Any]) -> None:
        """The inverse of ``state``."""
        self.e.count, self.e.value = int(state["e"]["count"]), float(state["e"]["value"])


def diverged(measured: np.ndarray) -> str | None:
    """A sentence about numbers that are none, or None."""
    if np.isfinite(measured).all():
        return None
    step = int(np.flatnonzero(~np.isfinite(measured).all(axis=1))[0])
    return (
        f"the losses are no numbers any more from step {step + 1} of the epoch on (mean squared "
        f"error {measured[step, 0]}, SMMD² {measured[step, 1]}); {REMEDY}"
    )
