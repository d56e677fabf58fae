"""What hook files import from ``emloop.types``."""

import pytest

from hookloop_dialects.emloop.types import TrainingTerminated, is_termination


def test_a_termination_is_known_by_its_name_among_the_ancestors():
    theirs = type("TrainingTerminated", (Exception,), {"__module__": "emloop.types"})
    mine = type("Enough", (theirs,), {})
    for error in (TrainingTerminated("done"), theirs(), mine()):
        assert is_termination(error)


@pytest.mark.parametrize("error", [ValueError("TrainingTerminated"), KeyboardInterrupt()])
def test_other_errors_are_no_terminations(error):
    assert not is_termination(error)
