import math

import pytest
import torch

from hookloop.errors import MetricError
from hookloop.metrics.series import FOLD
from hookloop.metrics.store import MetricStore


def test_tensors_are_not_read_until_a_number_is_asked_for(monkeypatch):
    reads = []
    for name in ("item", "tolist", "__float__", "cpu"):
        original = getattr(torch.Tensor, name)
        monkeypatch.setattr(
            torch.Tensor,
            name,
            lambda self, *a, _o=original, _n=name: (reads.append(_n), _o(self, *a))[1],
        )
    store = MetricStore()
    for step in range(2 * FOLD + 3):
        store.put("train/loss", torch.tensor(float(step)))
        store.put("train/norm", torch.tensor(1.0))
    assert reads == []
    assert store.stream("train") == {"loss": (2 * FOLD + 2) / 2, "norm": 1.0}
    assert reads == ["tolist"]  # one copy for both


def test_a_tensor_changed_in_place_afterwards_does_not_change_the_record():
    store, value = MetricStore(), torch.tensor(1.0)
    store.put("a", value)
    value.add_(5)
    assert store.latest("a") == 1.0


def test_means_are_those_of_the_epoch_and_windows_go_on():
    store = MetricStore()
    store.put("train/loss", 4.0)
    store.start_epoch("train")
    assert math.isnan(store.mean("train/loss"))
    store.put("train/loss", 2.0)
    assert store.mean("train/loss") == 2.0
    assert store.smooth(["train/loss"]) == {"train/loss": 3.0}


def test_an_epoch_of_one_stream_leaves_the_others_alone():
    store = MetricStore()
    store.put("train/loss", 1.0)
    store.put("trains/loss", 3.0)
    store.start_epoch("train")
    assert store.stream("trains") == {"loss": 3.0}


def test_weights_count():
    store = MetricStore()
    store.put("val/acc", 1.0)
    store.put("val/acc", torch.tensor(0.0), weight=3)
    assert store.mean("val/acc") == 0.25


def test_an_unknown_name_tells_those_that_exist():
    store = MetricStore()
    store.put("val/accuracy", 1.0)
    with pytest.raises(MetricError, match="Did you mean 'val/accuracy'.*There are: val/accuracy"):
        store.latest("val/acuracy")


def test_only_scalars_are_taken():
    with pytest.raises(MetricError, match=r"shape \(2,\)"):
        MetricStore().put("a", torch.zeros(2))


def test_each_reader_reads_what_came_since_it_read_last():
    store = MetricStore()

    def put(values):
        for value in values:
            store.put("train/loss", float(value))

    put([1, 3])
    assert store.since("train", "log") == {"train/loss": 2.0}
    put([7])
    store.start_epoch("train")
    put([9])
    assert store.since("train", "log") == {"train/loss": 8.0}
    assert store.since("train", "log") == {"train/loss": 9.0}
    assert store.since("train", "other") == {"train/loss": 5.0}
    put(range(1000))
    resumed = MetricStore()
    resumed.load_state_dict(store.state_dict())
    for one in (store, resumed):
        one.put("train/loss", 0.0)
        assert one.since("train", "log") == {"train/loss": sum(range(901, 1000)) / 100}
