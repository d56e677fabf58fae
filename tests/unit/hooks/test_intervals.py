import pytest

from hookloop import Every, Hook
from hookloop.errors import HookError
from hookloop.hooks._intervals import interval_of, moment_of


class Sample(Hook):
    pass


def test_an_interval_within_epochs_is_read():
    assert interval_of(Sample(), 50) == Every.parse("50 iters")
    assert interval_of(Sample(), "2 minutes").unit == "seconds"
    for wrong in ("1 epoch", "often", 0):
        with pytest.raises(HookError, match="^Sample: "):
            interval_of(Sample(), wrong)


def test_a_moment_of_a_run_is_read():
    assert moment_of(Sample(), "begin", 0).count == 0
    assert moment_of(Sample(), "begin", "2 epochs") == Every.parse("2 epochs")
    for wrong in ("5 minutes", "soon", -1):
        with pytest.raises(HookError, match="^Sample: begin"):
            moment_of(Sample(), "begin", wrong)
