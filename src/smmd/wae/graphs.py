"""Making a GPU's steps fast without changing what they compute.

A step of a small network is a hundred small kernels, and the host needs longer to ask for them than
the GPU to run them.  So ``step`` is recorded once as a CUDA graph, several steps in a row, and the
recording replayed; several seeds are recorded side by side on streams of their own, and the GPU
runs what fits at the same time.  Each seed's arithmetic is exactly that of a run alone.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from smmd.wae.loop import Learner

#: Steps in one recording.
UNROLL = 20
#: How many streams the learners share: on an H200 more are no faster (``benchmarks/train.py``).
STREAMS = 5


class Recording:
    """An epoch's steps of some learners, replayed; call it as ``loop.advance`` is called."""

    def __init__(self, learners: Sequence[Learner], unroll: int = UNROLL) -> None:
        self.learners = list(learners)
        self.device = learners[0].images.device
        self.steps = learners[0].steps
        self.unroll = min(unroll, self.steps)
        count = min(STREAMS, len(learners))
        self.streams = [torch.cuda.Stream(self.device) for _ in range(count)]
        kept = [{name: t.clone() for name, t in learner.tensors().items()} for learner in learners]
        try:
            with torch.cuda.device(self.device):
                self._warm_up()
                self.many = self._record(self.unroll)
                self.one = self._record(1) if self.steps % self.unroll else None
        finally:
            for learner, tensors in zip(self.learners, kept, strict=True):
                learner.restore(tensors)
                learner.place.zero_()

    def __call__(self) -> Iterator[int]:
        done = 0
        while done + self.unroll <= self.steps:
            self.many.replay()
            done += self.unroll
            yield done
        while done < self.steps:
            assert self.one is not None
            self.one.replay()
            done += 1
            yield done

    def _warm_up(self) -> None:
        """Let libraries choose their algorithms and take their memory before recording."""
        for _ in range(3):
            for learner in self.learners:
                learner.place.zero_()
            self._side_by_side(1)
        torch.cuda.synchronize(self.device)

    def _record(self, times: int) -> Any:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._side_by_side(times)
        return graph

    def _side_by_side(self, times: int) -> None:
        here = torch.cuda.current_stream(self.device)
        for stream in self.streams:
            stream.wait_stream(here)
        for learner, stream in zip(self.learners, itertools.cycle(self.streams), strict=False):
            with torch.cuda.stream(stream):
                for _ in range(times):
                    learner.step()
        for stream in self.streams:
            here.wait_stream(stream)


@contextlib.contextmanager
def arithmetic(precision: str) -> Iterator[None]:
    """float32 as it is, or tf32: products of numbers with 10 bits, sums in full."""
    narrow = precision != "float32"
    cuda, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = (cuda.allow_tf32, cudnn.allow_tf32, cudnn.benchmark)
    cuda.allow_tf32, cudnn.allow_tf32, cudnn.benchmark = narrow, narrow, True
    try:
        yield
    finally:
        cuda.allow_tf32, cudnn.allow_tf32, cudnn.benchmark = before
