"""What hooks share: scalars with their histories, and pieces of information."""

import numpy as np
import pytest
import torch

from hookloop_mmengine.logging import MessageHub


@pytest.fixture
def hub():
    return MessageHub("test")


@pytest.mark.parametrize(
    "value",
    [2, 2.0, np.int64(2), np.float32(2), np.array([2.0]), torch.tensor(2.0), torch.tensor([[2.0]])],
    ids=repr,
)
def test_a_scalar_comes_in_many_forms(hub, value):
    hub.update_scalar("x", value)
    assert hub.get_scalar("x").current() == 2


@pytest.mark.parametrize("value", ["2", None, [2], torch.ones(2), np.ones(2), {"a": 1}], ids=repr)
def test_everything_else_is_rejected(hub, value):
    with pytest.raises(AssertionError, match="x must be a scalar"):
        hub.update_scalar("x", value)


def test_a_tensor_that_changes_later_keeps_its_value_here(hub):
    loss = torch.tensor(1.0)
    hub.update_scalar("loss", loss)
    loss += 1
    assert hub.get_scalar("loss").current() == 1


def test_a_count_is_an_integer(hub):
    with pytest.raises(TypeError, match="type of count must be int"):
        hub.update_scalar("x", 1, count=1.5)


def test_several_scalars_at_once(hub):
    hub.update_scalars({"a": 1, "b": {"value": 4, "count": 2}, "c": {"value": 3}})
    assert hub.get_scalar("a").current() == 1
    assert hub.get_scalar("b").mean() == 2
    assert hub.get_scalar("c").mean() == 3
    assert sorted(hub.log_scalars) == ["a", "b", "c"]


def test_an_unknown_scalar_is_a_key_error(hub):
    with pytest.raises(KeyError, match="nothing is not found in Messagehub.log_buffers"):
        hub.get_scalar("nothing")


def test_information_is_set_copied_and_removed(hub):
    hub.update_info("list", [1])
    hub.get_info("list").append(2)
    assert hub.get_info("list") == [1]
    hub.update_info_dict({"epoch": 3, "iter": 4})
    assert hub.pop_info("epoch") == 3
    assert hub.pop_info("epoch", -1) == -1
    assert hub.get_info("epoch", 7) == 7
    assert hub.runtime_info == {"list": [1], "iter": 4}


def test_whether_a_key_is_resumed_cannot_change(hub):
    hub.update_scalar("x", 1, resumed=False)
    with pytest.raises(AssertionError, match="x used to be False, but got True now"):
        hub.update_scalar("x", 1)
    hub.update_info("y", 1)
    with pytest.raises(AssertionError, match="y used to be True"):
        hub.update_info("y", 1, resumed=False)


def test_its_state_holds_the_resumed_entries_only(hub):
    hub.update_scalar("kept", 1)
    hub.update_scalar("kept", 2)
    hub.update_scalar("dropped", 3, resumed=False)
    hub.update_info("epoch", 4)
    hub.update_info("secret", 5, resumed=False)
    again = MessageHub("other")
    again.load_state_dict(hub.state_dict())
    assert again.get_scalar("kept").data[0].tolist() == [1, 2]
    assert list(again.log_scalars) == ["kept"]
    assert again.runtime_info == {"epoch": 4}
    with pytest.raises(AssertionError):
        again.update_scalar("dropped", 1, resumed=True)


def test_loading_keeps_what_the_file_does_not_have(hub):
    hub.update_info("own", 1)
    hub.load_state_dict({"runtime_info": {"theirs": 2}})
    assert hub.runtime_info == {"own": 1, "theirs": 2}


def test_a_new_hub_of_a_name_replaces_the_old_one():
    old = MessageHub.get_instance("replaced")
    old.update_info("a", 1)
    assert MessageHub.get_instance("replaced") is old
    new = MessageHub.new_instance("replaced")
    assert new is not old
    assert MessageHub.get_current_instance() is new
    assert new.get_info("a") is None
    MessageHub._instance_dict.pop("replaced")


def test_other_arguments_of_get_instance_are_ignored():
    hub = MessageHub.get_instance("ignoring", runtime_info={"a": 1})
    assert hub.runtime_info == {}
    MessageHub._instance_dict.pop("ignoring")
