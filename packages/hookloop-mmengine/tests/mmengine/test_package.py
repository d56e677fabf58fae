"""What ``import mmengine`` offers."""

import subprocess
import sys
from importlib import import_module

import pytest

import hookloop_mmengine as mmengine
from hookloop import dialects


@pytest.mark.parametrize("home", mmengine._HOMES)
def test_names_at_the_top_are_those_of_their_modules(home):
    module = import_module(f"hookloop_mmengine.{home}")
    assert module.__all__
    for name in module.__all__:
        assert getattr(mmengine, name) is getattr(module, name)


def test_the_version_is_the_one_that_is_followed():
    from hookloop_mmengine.checkpoint_view import VERSION

    assert mmengine.__version__ == VERSION


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(mmengine, "zebra")
    with pytest.raises(AttributeError, match="has no attribute 'zebra'.*--graft mmengine"):
        _ = mmengine.zebra
    with dialects.alias("mmengine"), pytest.raises(ImportError, match="zebra"):
        from mmengine import zebra  # noqa: F401


@pytest.mark.slow
def test_the_registry_is_imported_without_torch():
    code = "import sys, hookloop_mmengine.registry; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
