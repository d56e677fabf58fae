"""Settings as dataclasses."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from hookloop.errors import HookError
from hookloop_dialects.pointrix.utils.config import parse_structured


@dataclass
class Config:
    steps: int = 3
    names: list = field(default_factory=list)


@pytest.mark.parametrize("cfg", [{"steps": 5}, SimpleNamespace(steps=5)])
def test_a_dataclass_is_made_from_a_mapping_or_an_object(cfg):
    assert parse_structured(Config, cfg) == Config(5, [])
    assert parse_structured(Config) == Config()


def test_an_unknown_entry_is_named():
    with pytest.raises(HookError, match="'step' is not an entry of Config.*Did you mean 'steps'"):
        parse_structured(Config, {"step": 1})
    with pytest.raises(HookError, match="is not a dataclass"):
        parse_structured(dict, {})
