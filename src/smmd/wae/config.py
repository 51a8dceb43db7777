"""Everything that a run is asked to do: presets, versions, and the checks of both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from smmd.wae import schedule
from smmd.wae.schedule import Stages

#: Table "WAEQuantitative" of the paper, and its appendix on random encoders as a fourth.
VERSIONS = {
    "code-norm": "code normalization, fixed kernel width",
    "adaptive-bn": "adaptive kernel width, batch normalization before the decoder",
    "adaptive-plain": "adaptive kernel width, no normalization",
    "random": "random encoder with Gaussian code normalization, closed-form penalty",
}
NETWORKS = ("paper", "quick", "residual", "custom")
PRECISIONS = ("auto", "float32", "tf32", "bf16")
#: The paper's appendix Code: 20 epochs each at 1/1000, a quarter and a sixteenth of it.
PAPER_STAGES: Stages = ((20, 1e-3), (20, 1e-3 / 4), (20, 1e-3 / 16))


@dataclass(frozen=True, kw_only=True)
class Config:
    """A run's options; ``choose`` makes one from a preset.

    >>> from smmd.wae.config import choose
    >>> choose("paper", version="adaptive-bn").epochs
    80
    """

    data: str = "mnist-subset"
    data_dir: str | None = None
    size: int | None = None
    preset: str = "paper"
    version: str = "code-norm"
    network: str = "paper"
    latent: int = 8
    stages: Stages = PAPER_STAGES
    batch: int = 100
    weight: float = 0.01
    scale: float = 0.125
    #: Share of the old value in the running statistics, as Keras counts it.
    momentum: float = 0.99
    precision: str = "auto"
    seed: int = 0
    #: CPU threads: part of the recipe, since their number decides the last bits.  None: all.
    threads: int | None = None
    #: Checkpoints kept besides the newest: what a damaged one falls back to.
    keep: int = 2

    def __post_init__(self) -> None:
        _one_of("version", self.version, VERSIONS)
        _one_of("network", self.network, NETWORKS)
        _one_of("precision", self.precision, PRECISIONS)
        object.__setattr__(self, "stages", schedule.checked(self.stages))
        for name, least in (("latent", 1), ("batch", 2), ("seed", 0), ("keep", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be a whole number, got {value!r}")
            if value < least:
                raise ValueError(f"{name} must be at least {least}, got {value}")
        if self.threads is not None and not (isinstance(self.threads, int) and self.threads >= 1):
            raise ValueError(f"threads must be a whole number >= 1, or None; got {self.threads!r}")
        for name in ("weight", "scale"):
            value = getattr(self, name)
            if not (math.isfinite(value) and (value > 0 or (name == "weight" and value == 0))):
                raise ValueError(f"{name} must be positive and finite, got {value!r}")
        if not 0.0 <= self.momentum < 1.0:
            raise ValueError(f"momentum must be in [0, 1), got {self.momentum!r}")

    @property
    def epochs(self) -> int:
        """The length of the schedule."""
        return schedule.epochs(self.stages)

    @property
    def adaptive(self) -> bool:
        """Whether the kernel's width follows the codes."""
        return self.version.startswith("adaptive")

    @property
    def random(self) -> bool:
        """Whether the encoder gives a distribution of codes."""
        return self.version == "random"

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {**asdict(self), "stages": [list(stage) for stage in self.stages]}

    @classmethod
    def from_json(cls, options: Mapping[str, Any]) -> Config:
        """The inverse of ``to_json``; unknown options are refused."""
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(options) - known):
            raise ValueError(
                f"unknown option{'s' if len(unknown) > 1 else ''} {', '.join(unknown)}; "
                f"known are {', '.join(sorted(known))}"
            )
        return cls(**options)


#: What each preset sets; everything else is as in the paper.
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {"network": "paper", "stages": PAPER_STAGES},
    # One thread: with layers this small a second one waits more than it works.
    "quick": {
        "network": "quick",
        "stages": ((8, 2e-3), (4, 2e-3 / 4), (3, 2e-3 / 16)),
        "threads": 1,
    },
}
#: The adaptive versions get a third more epochs, at the initial rate (paper: 20 on top of 60).
EXTRA = 1 / 3


def choose(preset: str = "quick", *, epochs: int | None = None, **options: Any) -> Config:
    """The options of a preset, with changes; None means the preset's own value.

    ``epochs`` stretches or shrinks the learning-rate schedule as a whole.
    """
    _one_of("preset", preset, PRESETS)
    given = {name: value for name, value in options.items() if value is not None}
    config = Config.from_json({**PRESETS[preset], "preset": preset, **given})
    if "stages" not in given and config.adaptive:
        first, *rest = config.stages
        longer = (first[0] + round(config.epochs * EXTRA), first[1])
        config = replace(config, stages=(longer, *rest))
    if epochs is not None:
        if isinstance(epochs, bool) or not isinstance(epochs, int):
            raise TypeError(f"epochs must be a whole number, got {epochs!r}")
        config = replace(config, stages=schedule.stretched(config.stages, epochs))
    return config


def _one_of(name: str, value: Any, known: Any) -> None:
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}; got {value!r}")
