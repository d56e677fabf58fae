"""Objects from the dicts of a config."""

import pytest

from hookloop_mmengine.model import Sequential
from hookloop_mmengine.registry import (
    MODELS,
    RUNNERS,
    DefaultScope,
    Registry,
    build_from_cfg,
    build_runner_from_cfg,
)


def test_what_is_built_inside_belongs_to_the_scope_of_the_whole():
    parts = Registry("part", scope="root")
    child = Registry("part", parent=parts, scope="kids")

    @child.register_module()
    class Inner: ...

    @child.register_module()
    class Outer:
        def __init__(self):
            self.scope = DefaultScope.get_current_instance().scope_name
            self.inner = parts.build({"type": "Inner"})

    outer = build_from_cfg({"type": "Outer", "_scope_": "kids"}, parts)
    assert outer.scope == "kids"
    assert isinstance(outer.inner, Inner)
    assert DefaultScope.get_current_instance() is None


def test_a_list_of_models_can_be_initialized():
    model = MODELS.build([{"type": "Linear", "in_features": 1, "out_features": 1}])
    assert isinstance(model, Sequential)


def test_an_unknown_runner_is_rejected():
    with pytest.raises(KeyError, match="Runnr is not in the mmengine::runner registry.*'Runner'"):
        RUNNERS.build({"runner_type": "Runnr"})
    with pytest.raises(KeyError, match="FlexibleRunner is not offered"):
        build_runner_from_cfg({"runner_type": "FlexibleRunner"}, RUNNERS)
