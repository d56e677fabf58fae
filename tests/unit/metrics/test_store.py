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
    assert store.stream("train") == {"train/loss": (2 * FOLD + 2) / 2, "train/norm": 1.0}
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
    assert store.stream("trains") == {"trains/loss": 3.0}


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

    def news(store, reader):
        return store.news(reader, (0, 0)).get((0, 0), {})

    put([1, 3])
    assert news(store, "log") == {"train/loss": 2.0}
    put([7])
    store.start_epoch("train")
    put([9])
    assert news(store, "log") == {"train/loss": 8.0}
    assert news(store, "log") == {}
    assert news(store, "other") == {"train/loss": 5.0}
    put(range(1000))
    resumed = MetricStore()
    resumed.load_state_dict(store.state_dict())
    for one in (store, resumed):
        one.put("train/loss", 0.0)
        assert news(one, "log") == {"train/loss": sum(range(901, 1000)) / 100}
    resumed.settle()
    resumed.put("train/loss", 7.0)
    assert news(resumed, "log") == news(resumed, "another") == {"train/loss": 7.0}


def test_what_is_read_stands_under_the_moment_at_which_it_was_put():
    store = MetricStore()
    store.put("early", 1.0)
    store.moment = (7, 0)
    store.put("quality", torch.tensor(2.0))
    store.series("train/loss").add(3.0)
    store.moment = (12, 1)
    store.put("late/one", float("nan"))
    store.put("left/alone", 1.0)
    news = store.news("log", (10, 1), skip=lambda name: name == "left/alone")
    assert list(news) == [(0, 0), (7, 0), (10, 1)]
    assert news[0, 0] == {"early": 1.0} and news[7, 0] == {"quality": 2.0}
    assert set(news[10, 1]) == {"train/loss", "late/one"}  # Iteration 12 was not completed.
    assert store.news("log", (12, 1)) == {(12, 1): {"left/alone": 1.0}}


def test_means_of_a_training_epoch_have_names_of_their_own():
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
def test_a_name_that_no_record_could_hold_is_rejected(name):
    with pytest.raises(MetricError, match="cannot be called|is not the name of a metric"):
        MetricStore().put(name, 1.0)


@pytest.mark.parametrize("value", ["much", None, [1.0]])
def test_what_is_not_a_number_is_rejected(value):
    with pytest.raises(MetricError, match="'quality' is .*: put a number"):
        MetricStore().put("quality", value)
