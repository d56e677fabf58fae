"""Classes by name."""

import pytest

from hookloop_dialects.imix.utils.registry import Registry, build_from_cfg


def test_classes_are_registered_and_built():
    models = Registry("model")

    @models.register_module(name="ignored")
    class Net:
        def __init__(self, width, depth=1):
            self.size = (width, depth)

    assert models.register_module(name="Other", module=dict) is None
    assert "Net" in models and len(models) == 2 and models.get("Other") is dict
    assert models.module_name == "model" and set(models.module_dict) == {"Net", "Other"}
    built = build_from_cfg({"type": "Net", "width": 2}, models, {"depth": 3, "width": 9})
    assert built.size == (2, 3)
    assert build_from_cfg({"type": Net, "width": 2}, models).size == (2, 1)


def test_what_is_wrong_is_named():
    models = Registry("model")
    models.register_module(module=dict)
    with pytest.raises(KeyError, match="'dixt' is not registered in model.*Did you mean 'dict'"):
        models.get("dixt")
    with pytest.raises(AssertionError, match="'dict' is registered in model already"):
        models.register_module(module=dict)
    with pytest.raises(AssertionError, match="is not a class"):
        models.register_module()(len)
    with pytest.raises(KeyError, match="has no 'type'"):
        build_from_cfg({}, models)
    with pytest.raises(TypeError, match="a name or a class"):
        build_from_cfg({"type": 3}, models)
