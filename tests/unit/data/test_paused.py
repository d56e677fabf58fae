from types import SimpleNamespace

import torch

from hookloop.data.random.paused import PausedRandomness
from hookloop.metrics.store import MetricStore


def paused():
    return PausedRandomness(SimpleNamespace(train_data=None, metrics=MetricStore()))


def test_numbers_continue_from_where_they_paused():
    torch.manual_seed(0)
    own = paused()
    own.pause()
    first = torch.rand(3)
    assert own.resume()
    assert torch.equal(torch.rand(3), first)
    assert not own.resume()  # Once.


def test_the_first_pause_counts():
    torch.manual_seed(0)
    own = paused()
    first = own.pause()
    torch.rand(3)
    assert own.pause() is first


def test_points_that_fire_again_leave_no_trace():
    own = paused()
    torch.manual_seed(0)
    expected = torch.rand(2)
    torch.manual_seed(0)
    with own.repeating(True):
        torch.rand(5)
    assert torch.equal(torch.rand(2), expected)


def test_points_that_fire_for_the_first_time_draw():
    own = paused()
    torch.manual_seed(0)
    torch.rand(5)
    expected = torch.rand(2)
    torch.manual_seed(0)
    with own.repeating(False):
        torch.rand(5)
    assert torch.equal(torch.rand(2), expected)
