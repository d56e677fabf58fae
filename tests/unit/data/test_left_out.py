from types import SimpleNamespace

import pytest

from hookloop.data.position.skipped import add_left_out, leave_out, loses_some, number_of


@pytest.mark.parametrize("left_out", [(), (1,), (3,), (1, 2, 3), (2, 5, 6), (9,)])
def test_numbers_are_those_of_the_data_that_is_read(left_out):
    read = [number for number in range(1, 12) if number not in left_out]
    assert [number_of(iteration, left_out) for iteration in range(1, 6)] == read[:5]
    assert number_of(0, left_out) in (0, *left_out)  # Nothing is read yet.


@pytest.mark.parametrize("done", range(7))
def test_groups_go_on_where_the_run_is(done):
    left_out = (2, 5)
    numbers = [number for number in range(1, 10) if number not in left_out]
    read = number_of(done, left_out) if done else 0
    groups = iter([[number] for number in range(read + 1, 10)])
    progress = SimpleNamespace(iter=done, iter_in_epoch=done, left_out=left_out)
    assert [group[0] for group in leave_out(groups, progress)] == numbers[done:]


def test_nothing_is_wrapped_when_nothing_is_left_out():
    groups = iter([[1], [2]])
    assert leave_out(groups, SimpleNamespace(iter=0, iter_in_epoch=0, left_out=())) is groups


def test_an_epoch_knows_whether_it_loses_some():
    def at(iteration, in_epoch):
        return SimpleNamespace(iter=iteration, iter_in_epoch=in_epoch, left_out=(4,))

    assert loses_some(at(5, 5))  # Of the first epoch of six.
    assert not loses_some(at(8, 3))  # Of the second.


def test_what_is_left_out_is_counted_as_the_run_counted():
    first = add_left_out((), (), [5])
    assert first == (5,)
    assert add_left_out((), first, [5]) == (5, 6)
    assert add_left_out((3,), (), [1]) == (1, 3)
