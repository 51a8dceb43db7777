"""The paper's tables and figures, computed again and set beside the printed numbers.

    from smmd import paper
    paper.reproduce("out")                        # everything that needs no training
    paper.reproduce("out", ["thresholds"])        # one item

Each item is one module with an ``ITEM``; the printed values stand in it as data.
"""

from __future__ import annotations

from smmd.paper.runner import reproduce

__all__ = ["reproduce"]
