"""Names of MMEngine that are not offered."""

import importlib

import pytest

from hookloop import dialects
from hookloop_mmengine.missing import MISSING, message_for, reject
from hookloop_mmengine.registry import VISBACKENDS


@pytest.mark.parametrize("name", MISSING)
def test_each_names_its_replacement(name):
    message = message_for(name)
    assert message.startswith(f"MMEngine's {name} is not offered by hookloop. Use ")
    assert "install mmengine and use `hookloop run --graft mmengine`" in message
    with pytest.raises(ImportError, match=name):
        reject("mmengine.somewhere", name)


def test_an_import_is_rejected_with_the_replacement():
    with dialects.alias("mmengine"):
        with pytest.raises(ImportError, match="FlexibleRunner is not offered.*Use Runner"):
            from mmengine.runner import FlexibleRunner  # noqa: F401
        with pytest.raises(ImportError, match="PetrelBackend is not offered.*LocalBackend"):
            from mmengine.fileio import PetrelBackend  # noqa: F401
        with pytest.raises(ImportError, match="hub is not offered.*--graft mmengine"):
            from mmengine import hub  # noqa: F401
        with pytest.raises(ImportError, match="WandbVisBackend is not offered.*WriteWandb"):
            from mmengine.visualization import WandbVisBackend  # noqa: F401


@pytest.mark.parametrize("module", ["analysis", "hub", "infer.infer", "_strategy", "testing"])
def test_a_module_that_is_not_offered_is_rejected_with_the_graft(module):
    with (
        dialects.alias("mmengine"),
        pytest.raises(
            ModuleNotFoundError,
            match=f"'mmengine.{module.split('.')[0]}.*is not offered.*"
            "install mmengine and use `hookloop run --graft mmengine`",
        ),
    ):
        importlib.import_module(f"mmengine.{module}")


def test_another_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'a.b' has no attribute 'zebra'"):
        reject("a.b", "zebra")


@pytest.mark.parametrize(
    ("name", "writer"), [("WandbVisBackend", "WriteWandb"), ("MLflowVisBackend", "WriteMLflow")]
)
def test_a_config_that_names_a_missing_backend_is_told_the_native_hook(name, writer):
    with pytest.raises(KeyError, match=f"{name} is not offered.*hookloop.hooks.{writer}"):
        VISBACKENDS.build({"type": name})
