"""The numbers that iMIX's hooks pass to each other."""

import pytest
import torch
from tests.tiny import make_trainer

from hookloop.errors import HookError
from hookloop_dialects.imix import HistoryBuffer, LogBufferStorage, get_log_buffer
from hookloop_dialects.imix.log_buffer import set_log_buffer


@pytest.fixture
def buffer():
    return LogBufferStorage(run=make_trainer().run)


def test_a_history_has_means_and_medians():
    history = HistoryBuffer()
    for value in (1, 2, 9):
        history.update(value)
    assert (history.latest(), history.median(3), history.avg(2)) == (9, 2, 5.5)
    assert history.global_mean == history.global_avg() == 4


def test_a_history_keeps_the_newest_and_the_mean_of_all():
    history = HistoryBuffer(max_length=2)
    history.update(10)
    history.extend([1.0, 3.0], [5, 6])
    assert history.values() == [(1.0, 5), (3.0, 6)]
    assert history.global_mean == pytest.approx(14 / 3)
    assert history.avg(100) == 2
    history.update(7, iteration=40)
    assert history.values()[-1] == (7.0, 40)
    history.update(8)
    assert history.values()[-1] == (8.0, 4)  # By default the number of values before it.


def test_scalars_are_those_of_the_iteration_until_the_next(buffer):
    buffer.put_scalar("a", torch.tensor(2.0, requires_grad=True))
    buffer.put_scalars(b=3, c=4)
    assert buffer.latest == {"a": 2.0, "b": 3.0, "c": 4.0}
    before = buffer.latest
    buffer.step()
    assert buffer.latest == {} and before["a"] == 2.0
    assert buffer.history("a").values() == [(2.0, 0)]
    assert set(buffer.histories()) == {"a", "b", "c"}


def test_scalars_reach_the_metrics_of_the_run():
    run = make_trainer().run
    LogBufferStorage(run=run).put_scalar("a", 2)
    assert run.metrics.all_latest()["train/a"] == 2


def test_smoothing_takes_the_median_of_a_window_where_it_is_allowed(buffer):
    for value in (1, 9, 2):
        buffer.put_scalar("smooth", value)
        buffer.put_scalar("exact", value, smoothing_hint=False)
    assert buffer.latest_with_smoothing_hint(3) == {"smooth": 2, "exact": 2}
    assert buffer.latest_with_smoothing_hint(2) == {"smooth": 5.5, "exact": 2}


def test_a_name_keeps_its_hint(buffer):
    buffer.put_scalar("a", 1)
    with pytest.raises(AssertionError, match="'a' was put with another smoothing_hint"):
        buffer.put_scalar("a", 1, smoothing_hint=False)


def test_a_scope_puts_its_name_before_the_others(buffer):
    with buffer.name_scope("eval/"):
        buffer.put_scalar("a", 1)
    buffer.put_scalar("a", 2)
    assert buffer.latest == {"eval/a": 1, "a": 2}


def test_losses_that_wait_are_read_with_their_iterations(buffer):
    buffer.iter = 3
    for value in (1.0, 2.0):
        buffer.put_later("loss", torch.tensor(value))
        buffer.step()
    assert buffer.latest == {}  # Both are of iterations before.
    buffer.put_later("loss", torch.tensor(5.0))
    assert buffer.latest == {"loss": 5.0}
    assert buffer.history("loss").values() == [(1.0, 3), (2.0, 4), (5.0, 5)]


def test_a_history_that_is_missing_names_the_nearest(buffer):
    buffer.put_scalar("accuracy", 1)
    with pytest.raises(KeyError, match="no hook has put 'acuracy'.*Did you mean 'accuracy'"):
        buffer.history("acuracy")


def test_pictures_and_distributions_wait_for_a_logger(buffer):
    buffer.iter = 2
    buffer.put_image("p", "a picture")
    buffer.put_histogram("h", [1, 2, 2])
    assert buffer.vis_data.images == [("p", "a picture", 2)]
    (raw,) = buffer.histograms.histograms
    assert (raw["tag"], raw["min"], raw["max"], raw["num"]) == ("h", 1, 2, 3)
    assert (raw["sum"], raw["sum_squares"], raw["global_step"]) == (5, 9, 2)
    assert sum(raw["bucket_counts"]) == 3 and raw["bucket_limits"][-1] == 2
    buffer.clear_images()
    assert len(buffer.vis_data) == 0 and len(buffer.histograms) == 1
    buffer.clear_histograms()
    assert len(buffer.histograms) == 0


def test_numbers_of_epochs_have_the_epoch_as_their_index(buffer):
    buffer.iter, buffer.epoch = 7, 2
    buffer.put_scalar("epoch_time", 1.5, is_epoch=True)
    assert buffer.history("epoch_time").values() == [(1.5, 2)]
    buffer.epoch_step()
    buffer.epoch_iter(4)
    assert (buffer.epoch, buffer.epoch_inner_iter, buffer.is_by_epoch) == (3, 5, True)


def test_a_buffer_can_take_the_place_of_the_runs_for_a_block(buffer):
    set_log_buffer(buffer)
    with LogBufferStorage() as other:
        get_log_buffer().put_scalar("a", 1)
    assert get_log_buffer() is buffer
    assert other.latest == {"a": 1} and buffer.latest == {}
    set_log_buffer(None)


def test_the_buffer_of_the_current_run_is_found(buffer):
    set_log_buffer(buffer)
    assert get_log_buffer() is buffer
    set_log_buffer(None)
    with pytest.raises(HookError, match="no run with hooks of iMIX is in progress"):
        get_log_buffer()
