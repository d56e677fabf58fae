"""Directories, seeds, and dictionaries with attributes."""

import contextvars
from pathlib import Path

import pytest
import torch

from hookloop_dialects.imix.utils import config
from hookloop_dialects.imix.utils.config import imixEasyDict


def test_items_are_attributes_at_every_depth():
    cfg = imixEasyDict({"a": {"b": [{"c": 1}]}}, d=2)
    assert cfg.a.b[0].c == 1 and cfg.d == 2
    cfg.e = {"f": 3}
    assert cfg["e"].f == 3
    assert cfg.pop("d") == 2 and cfg.pop("d") is None and cfg.pop("d", 5) == 5
    assert not hasattr(cfg, "missing")
    with pytest.raises(AttributeError, match="missing"):
        cfg.missing  # noqa: B018 - the question itself


def test_directories_can_be_set():
    def look():
        assert config.get_imix_work_dir() == "./work_dir"
        assert config.get_imix_cache_dir() == str(Path("~/cache").expanduser())
        config.set_imix_work_dir("~/w")
        config.set_imix_cache_dir("/c")
        assert config.get_imix_work_dir() == str(Path("~/w").expanduser())
        assert config.get_imix_cache_dir() == "/c"

    contextvars.copy_context().run(look)
    assert config.get_imix_work_dir() == "./work_dir"


def test_random_numbers_are_seeded():
    config.seed_all_rng(3)
    first = torch.rand(2)
    config.seed_all_rng(3)
    assert torch.equal(first, torch.rand(2))
    config.seed_all_rng()
    assert not torch.equal(first, torch.rand(2))
