"""MMEngine's values as plain ones, and back."""

from collections import deque

import numpy as np
import torch
from mmengine.config import ConfigDict
from mmengine.logging import HistoryBuffer, MessageHub

from hookloop_mmengine.graft.plain import plain_hub, to_plain, with_histories


def test_values_become_plain():
    value = ConfigDict(a=np.float32(0.5), b=deque([1]), c={"d": np.arange(2)}, e=torch.float32)
    assert to_plain(value) == {"a": 0.5, "b": [1], "c": {"d": [0, 1]}, "e": torch.float32}
    assert to_plain(object).startswith("<class")


def test_the_versions_of_modules_stay():
    weights = torch.nn.BatchNorm1d(2).state_dict()
    assert to_plain(weights)._metadata == weights._metadata


def test_a_hub_comes_back_with_its_histories():
    hub = MessageHub("plain")
    for number in (0.1, 0.2):
        hub.update_scalar("train/loss", number)
    hub.update_info("epoch", 3)
    loaded = with_histories({"message_hub": plain_hub(hub.state_dict())})["message_hub"]
    other = MessageHub("other")
    other.load_state_dict(loaded)
    history = other.get_scalar("train/loss")
    assert isinstance(history, HistoryBuffer)
    assert history.data[0].tolist() == [0.1, 0.2]
    assert other.get_info("epoch") == 3


def test_what_is_not_a_hub_is_left_alone():
    assert with_histories({"message_hub": "text"}) == {"message_hub": "text"}
