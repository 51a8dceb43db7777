"""Classes by name and by colour."""

from __future__ import annotations

import numpy as np

from smmd.wae.data import Dataset

#: Ten colours of about equal weight that most people can tell apart; the last is for the rest.
PALETTE = (
    "#2f6690",
    "#d1701f",
    "#4d8b57",
    "#b5342b",
    "#7d5ba6",
    "#8a6248",
    "#d07fb0",
    "#6f7a83",
    "#a8a032",
    "#3aa6b0",
)


def name_of(data: Dataset, label: int) -> str:
    """A class as people call it."""
    return data.classes[label] if 0 <= label < len(data.classes) else str(label)


def colour_indices(data: Dataset, rows: np.ndarray) -> list[int]:
    """A place in the palette for each of the test images; the first where there are no labels."""
    if data.test_labels is None:
        return [0] * len(rows)
    present = np.unique(data.test_labels)
    places = np.searchsorted(present, data.test_labels[rows]) % len(PALETTE)
    return [int(place) for place in places]
