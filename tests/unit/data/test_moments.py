from types import SimpleNamespace

import torch

from hookloop.data.random.paused import Moments
from hookloop.metrics.store import MetricStore


def moments():
    return Moments(SimpleNamespace(train_data=None, metrics=MetricStore()))


def test_numbers_continue_from_where_they_were_kept():
    torch.manual_seed(0)
    own = moments()
    own.keep()
    first = torch.rand(3)
    assert own.take_up()
    assert torch.equal(torch.rand(3), first)
    assert not own.take_up()  # Once.


def test_the_first_moment_is_kept():
    torch.manual_seed(0)
    own = moments()
    first = own.keep()
    torch.rand(3)
    assert own.keep() is first


def test_points_that_fire_again_leave_no_trace():
    own = moments()
    torch.manual_seed(0)
    expected = torch.rand(2)
    torch.manual_seed(0)
    with own.repeating(True):
        torch.rand(5)
    assert torch.equal(torch.rand(2), expected)


def test_points_that_fire_for_the_first_time_draw():
    own = moments()
    torch.manual_seed(0)
    torch.rand(5)
    expected = torch.rand(2)
    torch.manual_seed(0)
    with own.repeating(False):
        torch.rand(5)
    assert torch.equal(torch.rand(2), expected)
