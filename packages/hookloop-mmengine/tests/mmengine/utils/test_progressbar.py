"""A line that counts finished tasks."""

import io
import re

import pytest

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
