import math

import pytest
import torch

from hookloop.errors import MetricError
from hookloop.metrics.series import FOLD
from hookloop.metrics.store import MetricStore


def test_tensors_are_read_only_when_a_number_is_needed(monkeypatch):
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
    assert store.stream("train") == {"train/loss": (2 * FOLD + 2) / 2, "train/norm": 1.0}
    assert reads == ["tolist"]  # one copy for both


def test_changing_a_tensor_in_place_later_does_not_change_its_value():
    store, value = MetricStore(), torch.tensor(1.0)
    store.put("a", value)
    value.add_(5)
    assert store.latest("a") == 1.0


def test_means_start_again_with_the_epoch_and_windows_continue():
    store = MetricStore()
    store.put("train/loss", 4.0)
    store.start_epoch("train")
    assert math.isnan(store.mean("train/loss"))
    store.put("train/loss", 2.0)
    assert store.mean("train/loss") == 2.0
    assert store.smooth(["train/loss"]) == {"train/loss": 3.0}


def test_starting_an_epoch_affects_only_its_stream():
    store = MetricStore()
    store.put("train/loss", 1.0)
    store.put("trains/loss", 3.0)
    store.start_epoch("train")
    assert store.stream("trains") == {"trains/loss": 3.0}


def test_a_mean_is_weighted():
    store = MetricStore()
    store.put("val/acc", 1.0)
    store.put("val/acc", torch.tensor(0.0), weight=3)
    assert store.mean("val/acc") == 0.25


def test_an_unknown_name_lists_those_that_exist():
    store = MetricStore()
    store.put("val/accuracy", 1.0)
    with pytest.raises(MetricError, match="'val/accuracy'.*val/accuracy"):
        store.latest("val/acuracy")


def test_a_tensor_with_several_numbers_is_rejected():
    with pytest.raises(MetricError, match=r"shape \(2,\)"):
        MetricStore().put("a", torch.zeros(2))


def test_each_reader_gets_the_values_since_its_last_read():
    store = MetricStore()

    def put(values):
        for value in values:
            store.put("train/loss", float(value))

    def read(store, reader):
        return store.read_new(reader, (0, 0)).get((0, 0), {})

    put([1, 3])
    assert read(store, "log") == {"train/loss": 2.0}
    put([7])
    store.start_epoch("train")
    put([9])
    assert read(store, "log") == {"train/loss": 8.0}
    assert read(store, "log") == {}
    assert read(store, "other") == {"train/loss": 5.0}
    put(range(1000))
    resumed = MetricStore()
    resumed.load_state_dict(store.state_dict())
    for same in (store, resumed):
        same.put("train/loss", 0.0)
        assert read(same, "log") == {"train/loss": sum(range(901, 1000)) / 100}
    resumed.mark_all_read()
    resumed.put("train/loss", 7.0)
    assert read(resumed, "log") == read(resumed, "another") == {"train/loss": 7.0}


def test_values_are_read_under_the_stamp_at_which_they_were_put():
    store = MetricStore()
    store.put("early", 1.0)
    store.stamp = (7, 0)
    store.put("quality", torch.tensor(2.0))
    store.series("train/loss").add(3.0)
    store.stamp = (12, 1)
    store.put("late/one", float("nan"))
    store.put("left/alone", 1.0)
    found = store.read_new("log", (10, 1), skip=lambda name: name == "left/alone")
    assert list(found) == [(0, 0), (7, 0), (10, 1)]
    assert found[0, 0] == {"early": 1.0} and found[7, 0] == {"quality": 2.0}
    assert set(found[10, 1]) == {"train/loss", "late/one"}  # Iteration 12 was not completed.
    assert store.read_new("log", (12, 1)) == {(12, 1): {"left/alone": 1.0}}


def test_means_of_a_training_epoch_are_put_under_their_own_names():
    store = MetricStore()
    for value in (1.0, 2.0):
        store.put("train/loss", value)
    store.put("val/loss", 5.0)
    store.end_epoch()
    assert store.latest("train_epoch/loss") == 1.5 and store.latest("train/loss") == 2.0
    store.start_epoch("train")
    store.end_epoch()  # Nothing was put: nothing follows.
    assert (
        store.stream("train_epoch") == {"train_epoch/loss": 1.5}
        and "train_epoch/val/loss" not in store
    )


@pytest.mark.parametrize("name", ["iter", "epoch", "time", "", "/", None])
def test_a_reserved_or_empty_name_is_rejected(name):
    with pytest.raises(MetricError, match="cannot be called|is not the name of a metric"):
        MetricStore().put(name, 1.0)


@pytest.mark.parametrize("value", ["much", None, [1.0]])
def test_what_is_not_a_number_is_rejected(value):
    with pytest.raises(MetricError, match="'quality'"):
        MetricStore().put("quality", value)


def test_values_since_a_count_are_read_without_changing_the_state():
    store = MetricStore()
    store.put("a", 1.0)
    counts = store.counts(["a", "b"])
    assert counts == {"a": 1}
    store.put("a", torch.tensor(2.0))
    store.put("b", 3.0)
    before = store.state_dict()
    assert store.values_since(counts, ["a", "b", "c"]) == {"a": [2.0], "b": [3.0]}
    assert store.values_since(store.counts(["a", "b"]), ["a", "b"]) == {}
    assert store.state_dict() == before
    for value in range(300):
        store.put("a", value)
    assert store.values_since(counts, ["a"]) == {"a": [float(value) for value in range(200, 300)]}


def test_the_newest_values_can_be_limited_to_an_iteration_or_to_hooks():
    store = MetricStore()
    store.stamp = (3, 0)
    store.put("val/loss", 0.5)
    store.put("quality", 1.0)
    store.stamp = (5, 1)
    store.put("quality", 2.0)
    store.put("lr/head", 0.1)
    store.series("train/loss").add(torch.tensor(0.25))  # As the loop does: without a stamp.
    assert store.latest_at(5) == {"quality": 2.0, "lr/head": 0.1, "train/loss": 0.25}
    assert store.latest_at(3) == {"val/loss": 0.5, "train/loss": 0.25}
    assert store.latest_of_hooks() == {"quality": 2.0, "lr/head": 0.1}


def test_existing_values_are_kept_within_the_context_only():
    store = MetricStore()
    store.put("size", 5)
    with store.keep_existing():
        store.put("size", 6)
        store.put("new", 7)
    assert store.all_latest() == {"size": 5.0, "new": 7.0}
    store.put("size", 8)
    assert store.latest("size") == 8.0
