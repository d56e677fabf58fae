"""A config whose entries are attributes."""

import copy
import pickle

import pytest

from hookloop_dialects.vissl.config import AttrDict


def test_entries_are_attributes_that_can_be_set_and_deleted():
    config = AttrDict({"LOSS": {"name": "moco_loss"}, "LIST": [1]})
    config.LOSS.name = "swav_loss"
    config["NEW"] = 3
    assert (config["LOSS"]["name"], config.NEW) == ("swav_loss", 3)
    del config.NEW
    assert "NEW" not in config and "LOSS" in dir(config)
    with pytest.raises(AttributeError):
        del config.NEW
    with pytest.raises(AttributeError, match="'LOS'.*'LOSS'"):
        config.LOS  # noqa: B018 - the question itself
    assert not hasattr(config, "MODEL")


def test_copies_are_configs_of_their_own():
    config = AttrDict({"A": {"b": [1]}})
    for other in (copy.deepcopy(config), pickle.loads(pickle.dumps(config))):
        other.A.b.append(2)
        assert config.A.b == [1] and isinstance(other.A, AttrDict)
    assert type(config.to_dict()["A"]) is dict
