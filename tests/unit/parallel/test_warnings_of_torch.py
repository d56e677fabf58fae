import os

import pytest

from hookloop.parallel.warnings_of_torch import set_aside

WARNING = """[W1119 05:46:15.5 TCPStore.cpp:138] [c10d] recvValueWithTimeout failed
Exception raised from recvBytes at Utils.hpp:787 (most recent call first):
frame #0: c10::Error::Error(c10::SourceLocation) + 0x9d (0x7fe0 in libc10.so)
<omitting python frames>
frame #28: <unknown function> + 0x891f5 (0x7fe0 in libc.so.6)

"""
OTHER = "[W1119 05:46:15.5 Tensor.cpp:1] a warning of another kind\nof a user\n"


def warn():
    os.write(2, (OTHER + WARNING).encode())


def warn_and_fail():
    warn()
    return 1 / 0


def test_where_nothing_failed_only_other_lines_are_shown(capfd):
    with set_aside():
        warn()
        assert capfd.readouterr().err == ""
    assert capfd.readouterr().err == OTHER


def test_where_something_failed_all_is_shown(capfd):
    with pytest.raises(ZeroDivisionError), set_aside():
        warn_and_fail()
    assert capfd.readouterr().err == OTHER + WARNING
