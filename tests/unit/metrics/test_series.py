import numpy as np
import pytest
import torch

from hookloop.metrics.series import FOLD, WINDOW, Series, read_all, smooth_all


@pytest.mark.parametrize("count", [1, FOLD - 1, FOLD, 3 * FOLD + 7])
def test_the_state_is_bounded_and_restores_every_bit(count):
    values = torch.rand(2 * count, generator=torch.Generator().manual_seed(0))
    straight = Series()
    for value in values:
        straight.add(value)
    first = Series()
    for value in values[:count]:
        first.add(value)
    state = first.state_dict()
    assert len(state["recent"]) <= WINDOW and len(state["pending"]) < FOLD
    second = Series()
    second.load_state_dict(state)
    for value in values[count:]:
        second.add(value)
    assert float(second.mean()) == float(straight.mean())
    assert float(second.smooth()) == float(straight.smooth())


def test_tensors_of_several_types_and_numbers_are_averaged():
    series = Series()
    series.add(torch.tensor(1.0, dtype=torch.bfloat16))
    series.add(2.0)
    series.add(torch.tensor(3.0, dtype=torch.float64))
    assert float(series.mean()) == 2.0


def test_reading_in_between_does_not_change_the_bits_of_a_sum():
    values = torch.rand(FOLD + 9, generator=torch.Generator().manual_seed(0))
    untouched, read = Series(), Series()
    for count, value in enumerate(values):
        untouched.add(value)
        read.add(value)
        if count % 50 == 49:
            read.smooth(50)
    assert float(read.mean()) == float(untouched.mean())


def test_a_value_is_copied_from_its_device_once(monkeypatch):
    sizes = []
    original = torch.Tensor.tolist
    monkeypatch.setattr(
        torch.Tensor, "tolist", lambda self: (sizes.append(len(self)), original(self))[1]
    )
    series = [Series(), Series()]
    for value in torch.arange(4.0):
        for one in series:
            one.add(value)
    assert smooth_all(series, [3, 3]) == [2.0, 2.0]
    read_all(series)
    assert series[0].smooth(4) == 1.5
    assert sizes == [6, 2]


def test_a_window_includes_values_before_a_fold_and_an_epoch():
    series = Series()
    for value in range(FOLD + 2):
        series.add(float(value))
    assert series.smooth(4) == FOLD - 0.5
    series.start_epoch()
    assert not series.is_current and series.latest == FOLD + 1
    series.add(0.0)
    assert series.smooth(2) == (FOLD + 1) / 2


def test_ints_bools_and_numpy_numbers_are_accepted():
    series = Series()
    for value in (1, np.float64(2.0), True, torch.tensor(4)):
        series.add(value)
    assert float(series.mean()) == series.smooth() == 2.0


def test_replacing_the_last_value_changes_the_mean_and_no_count():
    series = Series()
    series.add(1.0)
    series.add(9.0)
    series.replace(3.0)
    assert (series.mean(), series.latest, series.count) == (2.0, 3.0, 2)


def test_marks_are_kept_per_reader_and_restored():
    series, restored = Series(), Series()
    series.add(1.0)
    assert series.mark_read("log") == 1 and series.mark_read("log") == 0
    series.add(2.0)
    restored.load_state_dict(series.state_dict())
    assert restored.mark_read("log") == 1 and restored.mark_read("screen") == 2
    restored.mark_all_read()
    restored.add(3.0)
    assert restored.mark_read("log") == restored.mark_read("new") == 1


def test_the_state_of_an_older_version_is_restored():
    series = Series()
    state = {"recent": [1.0, 2.0, 3.0], "pending": [3.0], "weights": None, "total": 3.0}
    series.load_state_dict(state | {"count": 2.0})
    assert (series.mean(), series.smooth(2), series.latest) == (2.0, 2.5, 3.0)
    assert series.stamp is None and series.mark_read("log") == 1
