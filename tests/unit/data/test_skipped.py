from types import SimpleNamespace

import pytest

from hookloop.data.position.skipped import add_skipped, has_skipped_data, number_of, skip_iterations


@pytest.mark.parametrize("skipped_iters", [(), (1,), (3,), (1, 2, 3), (2, 5, 6), (9,)])
def test_numbers_are_those_of_the_data_that_is_read(skipped_iters):
    read = [number for number in range(1, 12) if number not in skipped_iters]
    assert [number_of(iteration, skipped_iters) for iteration in range(1, 6)] == read[:5]
    assert number_of(0, skipped_iters) in (0, *skipped_iters)  # Nothing is read yet.


@pytest.mark.parametrize("done", range(7))
def test_groups_go_on_where_the_run_is(done):
    skipped_iters = (2, 5)
    numbers = [number for number in range(1, 10) if number not in skipped_iters]
    read = number_of(done, skipped_iters) if done else 0
    groups = iter([[number] for number in range(read + 1, 10)])
    progress = SimpleNamespace(iter=done, iter_in_epoch=done, skipped_iters=skipped_iters)
    assert [group[0] for group in skip_iterations(groups, progress)] == numbers[done:]


def test_nothing_is_wrapped_when_nothing_is_left_out():
    groups = iter([[1], [2]])
    assert (
        skip_iterations(groups, SimpleNamespace(iter=0, iter_in_epoch=0, skipped_iters=()))
        is groups
    )


def test_an_epoch_knows_whether_it_loses_some():
    def at(iteration, in_epoch):
        return SimpleNamespace(iter=iteration, iter_in_epoch=in_epoch, skipped_iters=(4,))

    assert has_skipped_data(at(5, 5))  # Of the first epoch of six.
    assert not has_skipped_data(at(8, 3))  # Of the second.


def test_what_is_left_out_is_counted_as_the_run_counted():
    first = add_skipped((), (), [5])
    assert first == (5,)
    assert add_skipped((), first, [5]) == (5, 6)
    assert add_skipped((3,), (), [1]) == (1, 3)
