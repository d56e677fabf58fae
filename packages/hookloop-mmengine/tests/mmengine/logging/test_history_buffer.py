"""A history of values and its statistics, with the numbers that MMEngine computes."""

import numpy as np
import pytest
import torch

from hookloop_mmengine.logging import HistoryBuffer


@pytest.fixture(autouse=True)
def registered():
    before = dict(HistoryBuffer._registered)
    yield
    HistoryBuffer._registered.clear()
    HistoryBuffer._registered.update(before)


def test_the_mean_divides_the_sum_by_the_counts():
    buffer = HistoryBuffer([1, 2, 3], [1, 1, 2])
    assert buffer.mean() == 1.5  # Not 2.25: values are not multiplied by their counts.
    assert buffer.mean(1) == 1.5
    assert buffer.mean(2) == pytest.approx(5 / 3)


@pytest.mark.parametrize(
    ("window", "least", "greatest"), [(None, 1, 5), (2, 2, 5), (1, 2, 2), (99, 1, 5)]
)
def test_statistics_of_a_window(window, least, greatest):
    buffer = HistoryBuffer([1, 5, 2], [1, 1, 1])
    assert buffer.min(window) == least
    assert buffer.max(window) == greatest
    assert buffer.current() == 2


def test_values_and_counts_are_arrays():
    values, counts = HistoryBuffer([1, 2], [3, 4]).data
    assert isinstance(values, np.ndarray)
    assert values.mean() == 1.5
    assert counts.tolist() == [3, 4]


def test_the_oldest_values_are_dropped():
    buffer = HistoryBuffer(max_length=2)
    for value in (1, 2, 3):
        buffer.update(value, count=value)
    assert [part.tolist() for part in buffer.data] == [[2, 3], [2, 3]]
    assert HistoryBuffer([1, 2, 3], [1, 1, 1], max_length=2).data[0].tolist() == [2, 3]


def test_tensors_and_numbers_may_be_mixed():
    buffer = HistoryBuffer()
    buffer.update(torch.tensor([2.0]))
    buffer.update(0.5)
    buffer.update(torch.tensor(1, dtype=torch.int64))
    assert buffer.data[0].tolist() == [2, 0.5, 1]
    assert buffer.mean(2) == 0.75


def test_a_tensor_is_read_only_when_it_is_needed():
    buffer = HistoryBuffer()
    buffer.update(torch.tensor(1.0))
    buffer.update(torch.tensor(2.0))
    assert buffer.current() == 2
    assert isinstance(buffer._values[0], torch.Tensor)


def test_a_statistic_is_found_by_its_name():
    buffer = HistoryBuffer([1, 2, 3], [1, 1, 1])

    @HistoryBuffer.register_statistics
    def weighted(buffer, window_size, *, weight):
        return buffer.mean(window_size) * weight

    assert buffer.statistics("mean", window_size=2) == 2.5
    assert buffer.statistics("current") == 3
    assert buffer.statistics("weighted", 2, weight=2) == 5


def test_an_unknown_statistic_names_the_others():
    with pytest.raises(KeyError, match="median has not been registered; there are: mean, max, min"):
        HistoryBuffer().statistics("median")


def test_wrong_arguments_are_rejected():
    with pytest.raises(ValueError, match="lengths of log_history and count_history"):
        HistoryBuffer([1], [])
    with pytest.raises(TypeError, match="window size should be int"):
        HistoryBuffer([1], [1]).mean(1.5)
    with pytest.raises(ValueError, match="empty array"):
        HistoryBuffer().current()


def test_its_state_makes_an_equal_buffer():
    buffer = HistoryBuffer([0.1, 0.2], [1, 5], max_length=7)
    buffer.update(torch.tensor(0.5))
    again = HistoryBuffer.from_state(buffer.state_dict())
    assert [part.tolist() for part in again.data] == [part.tolist() for part in buffer.data]
    assert again.max_length == 7
    assert HistoryBuffer.from_state(HistoryBuffer().state_dict()).data[0].tolist() == []
