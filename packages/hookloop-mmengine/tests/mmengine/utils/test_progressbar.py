"""A line that counts finished tasks."""

import io
import re

import pytest

from hookloop_mmengine import utils
from hookloop_mmengine.utils import ProgressBar


def shown(bar):
    return bar.file.getvalue().split("\r")[-1]


@pytest.mark.parametrize(
    ("done", "bar"), [(0, "    "), (1, ">   "), (2, ">>  "), (4, ">>>>"), (9, ">>>>")]
)
def test_the_bar_grows_with_the_tasks(done, bar):
    progress = ProgressBar(4, bar_width=4, file=io.StringIO())
    progress.update(done)
    assert re.fullmatch(rf"\[{bar}\] {done}/4, elapsed: \d+s", shown(progress))


def test_without_a_number_of_tasks_there_is_no_bar():
    progress = ProgressBar(file=io.StringIO())
    progress.update()
    progress.update()
    assert re.fullmatch(r"completed: 2, elapsed: \d+s", shown(progress))


def test_the_terminal_is_the_usual_place(capsys):
    ProgressBar(2).update()
    assert "1/2" in capsys.readouterr().out


def test_it_may_start_later():
    progress = ProgressBar(2, start=False, file=io.StringIO())
    assert progress.file.getvalue() == ""
    progress.start()
    assert "0/2" in shown(progress)


def double(number, more=0):
    return 2 * number + more


def test_tasks_are_done_with_a_bar():
    file = io.StringIO()
    assert utils.track_progress(double, [1, 2], bar_width=2, file=file, more=1) == [3, 5]
    assert "[>>] 2/2" in file.getvalue()
    assert file.getvalue().endswith("\n")
    endless = (iter([1, 2]), 2)
    assert list(utils.track_iter_progress(endless, file=io.StringIO())) == [1, 2]


@pytest.mark.parametrize(("tasks", "error"), [(3, TypeError), ((3, 1), AssertionError)])
def test_tasks_are_a_sequence(tasks, error):
    with pytest.raises(error):
        utils.track_progress(double, tasks)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"skip_first": True}, {"keep_order": False}])
def test_tasks_in_several_processes(options):
    file = io.StringIO()
    done = utils.track_parallel_progress(double, [1, 2, 3], 2, file=file, **options)
    assert sorted(done) == [2, 4, 6]
    assert ("1/1" if "skip_first" in options else "3/3") in file.getvalue()
    with pytest.raises(TypeError, match='"initargs" must be a tuple'):
        utils.track_parallel_progress(double, [1], 1, print, [1], file=file)
