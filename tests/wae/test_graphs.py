"""How training goes on where it cannot be recorded; recordings themselves need a GPU."""

import pytest
import torch

from smmd.wae import fit, graphs, session

SMALL = {"batch": 50, "latent": 2, "threads": 1}


@pytest.mark.parametrize("fused", [True, False])
def test_what_cannot_be_recorded_is_trained_all_the_same(spots, monkeypatch, fused):
    """As on a GPU without a compiler: first without fusing, then without a graph."""
    tried = []

    class Broken:
        def __init__(self, learners):
            tried.append(learners[0].fused)
            raise RuntimeError("first line\nno compiler")

    monkeypatch.setattr(graphs, "Recording", Broken)
    true = session.Session.__init__

    def made(self, *args):
        true(self, *args)
        self.recordable = True
        if fused:
            self.learners = [
                session.Learner(one.config, one.model, one.images, fused=True)
                for one in self.learners
            ]

    whole = fit(spots, epochs=2, **SMALL)
    monkeypatch.setattr(session.Session, "__init__", made)
    with pytest.warns(UserWarning, match=r"no compiler") as caught:
        run = fit(spots, epochs=2, **SMALL)
    assert tried == ([True, False] if fused else [False])
    assert len(caught) == len(tried)
    for mine, theirs in zip(run.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("precision", ["float32", "tf32"])
def test_arithmetic_is_put_back(precision):
    before = torch.backends.cuda.matmul.allow_tf32
    with graphs.arithmetic(precision):
        assert torch.backends.cuda.matmul.allow_tf32 == (precision == "tf32")
        assert torch.backends.cudnn.allow_tf32 == (precision == "tf32")
    assert torch.backends.cuda.matmul.allow_tf32 == before
