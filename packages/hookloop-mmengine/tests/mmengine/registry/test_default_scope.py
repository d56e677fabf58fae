"""The project whose registries are searched first."""

import pytest

from hookloop_mmengine.registry import DefaultScope, init_default_scope


def test_the_newest_scope_is_the_current_one():
    assert DefaultScope.get_current_instance() is None
    DefaultScope.get_instance("a", scope_name="mmdet")
    init_default_scope("mmseg")
    assert DefaultScope.get_current_instance().scope_name == "mmseg"
    assert DefaultScope.get_instance("a").scope_name == "mmdet"
    # The same name again, as of two runners that start within one second.
    DefaultScope.get_instance("a", scope_name="mmpose")
    assert DefaultScope.get_current_instance().scope_name == "mmpose"


def test_a_scope_lasts_for_a_block():
    init_default_scope("mmseg")
    with DefaultScope.overwrite_default_scope("mmdet"):
        assert DefaultScope.get_current_instance().scope_name == "mmdet"
        with DefaultScope.overwrite_default_scope(None):
            assert DefaultScope.get_current_instance().scope_name == "mmdet"
    assert DefaultScope.get_current_instance().scope_name == "mmseg"
    with pytest.raises(ZeroDivisionError), DefaultScope.overwrite_default_scope("mmdet"):
        _ = 1 / 0
    assert DefaultScope.get_current_instance().scope_name == "mmseg"


def test_a_scope_is_text():
    with pytest.raises(AssertionError, match="scope_name should be a string, but got 3"):
        DefaultScope("a", 3)
