"""Functions that need something, or are out of date."""

import pytest

from hookloop_mmengine import utils
from hookloop_mmengine.logging import MMLogger


def test_what_is_missing_is_named_when_the_function_is_called(capsys):
    @utils.requires_package(["os", "no_such_package"])
    def use(): ...

    with pytest.raises(RuntimeError, match="Prerequisites not meet"):
        use()
    assert '"no_such_package" are required in method "use"' in capsys.readouterr().out

    @utils.requires_package("os")
    @utils.requires_executable("python3")
    def fine(value):
        return value

    assert fine(3) == 3
    with pytest.raises(RuntimeError):
        utils.requires_executable("no-such-program")(fine)(3)


def test_old_arguments_get_their_new_names():
    @utils.deprecated_api_warning({"old": "new"}, cls_name="Thing")
    def use(a, new=0):
        return a, new

    assert use(1, new=2) == (1, 2)
    with pytest.warns(DeprecationWarning, match='"old" is deprecated in `Thing.use`.*"new"'):
        assert use(1, old=3) == (1, 3)
    with pytest.raises(AssertionError, match="`old` is the old name of `new`"):
        use(1, old=3, new=4)


def test_a_function_that_will_be_removed_says_so(tmp_path):
    @utils.deprecated_function("1.0", "2.0", "use another one")
    def use(value):
        return value

    MMLogger.get_instance("old", log_file=tmp_path / "a.log")
    assert use(3) == 3
    MMLogger._instance_dict.pop("old").close()
    assert "removed in version 2.0. Please use another one." in (tmp_path / "a.log").read_text()
