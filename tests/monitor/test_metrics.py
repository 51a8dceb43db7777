"""The torchmetrics metrics on one process (several: ``tests/torch_layers/test_ranks.py``)."""

from __future__ import annotations

import pickle

import pytest
import torch
from torchmetrics import MetricCollection

import smmd
import smmd.torch

VALUES = (1.0, 2.0, -4.0)


def plain(kind):
    made = smmd.BStatistic() if kind == "B" else smmd.EStatistic(0.9)
    for value in VALUES:
        made.update(value)
    return made


def metric(kind, **options):
    if kind == "B":
        return smmd.torch.BStatistic(**options)
    return smmd.torch.EStatistic(0.9, **options)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("how", ["update", "call", "at once"])
@pytest.mark.parametrize("kind", ["B", "E"])
def test_is_the_plain_statistic(kind, how, shared):
    found, expected = metric(kind, shared=shared), plain(kind)
    if how == "at once":
        found.update(torch.tensor(VALUES))
    for value in () if how == "at once" else VALUES:
        (found.update if how == "update" else found)(torch.tensor(value))
    assert found.value == pytest.approx(expected.value)
    assert found.compute().item() == pytest.approx(expected.value)
    assert found.band() == pytest.approx(expected.band())
    assert found.band(1) == pytest.approx(expected.band(1))
    assert found.converged == expected.converged
    assert found.statistic().count == 3
    assert found.verdict() == expected.verdict()


@pytest.mark.parametrize("kind", ["B", "E"])
def test_pickled_cloned_saved_and_reset(kind):
    found = metric(kind, batch=smmd.monitor.Batch(128, 8))
    found.persistent(True)
    found.update(torch.tensor(VALUES))
    again = metric(kind)
    again.load_state_dict(found.state_dict())
    for other in (pickle.loads(pickle.dumps(found)), found.clone(), again):
        assert other.value == pytest.approx(plain(kind).value)
    found.reset()
    assert found.statistic().count == 0


def test_in_a_collection():
    both = MetricCollection({"b": metric("B"), "e": metric("E")})
    for value in VALUES:
        both.update(torch.tensor(value))
    found = both.compute()
    for kind in ("B", "E"):
        assert found[kind.lower()].item() == pytest.approx(plain(kind).value)


def test_a_value_is_not_read_from_its_device():
    for kind in ("B", "E"):
        found = metric(kind).to("meta")
        found.update(torch.zeros(2, device="meta"))
        assert found.compute().device.type == "meta"


def test_no_graph_is_kept():
    found = metric("B")
    found.update(torch.tensor(1.0, requires_grad=True) * 2)
    assert not found.compute().requires_grad
