"""Packages that are installed."""

import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
import torch
import yaml

from hookloop_mmengine import utils
from hookloop_mmengine.utils import package_utils


def test_a_package_is_found_by_either_name():
    assert utils.is_installed("torch")
    assert utils.is_installed("pyyaml")
    assert utils.is_installed("yaml")
    assert not utils.is_installed("no-such-package")


def test_the_directory_of_a_package(tmp_path, monkeypatch):
    assert utils.get_installed_path("torch") == str(Path(torch.__file__).parent)
    assert utils.get_installed_path("yaml") == str(Path(yaml.__file__).parent)
    with pytest.raises(PackageNotFoundError):
        utils.get_installed_path("no_such_package")
    (tmp_path / "toy_space").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(RuntimeError, match="namespace package"):
        utils.get_installed_path("toy_space")


def test_a_package_that_is_there_is_not_installed_again(monkeypatch):
    called = []
    monkeypatch.setattr(package_utils, "call_command", called.append)
    utils.install_package("torch")
    utils.install_package("no-such-package")
    assert called == [[sys.executable, "-m", "pip", "install", "no-such-package"]]
