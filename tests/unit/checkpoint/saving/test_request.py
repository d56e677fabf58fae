import pytest

from hookloop.checkpoint.saving.request import Save
from hookloop.errors import CheckpointError


@pytest.mark.parametrize("name", ["", "../a.pth", "/a.pth", "b/a.pth", "b\\a.pth", ".a.pth", "a\0"])
def test_a_name_that_is_not_a_visible_file_is_rejected(name):
    with pytest.raises(CheckpointError, match="is not a name for a checkpoint"):
        Save(name)


def test_the_defaults_are_those_of_a_save_by_hand():
    save = Save("mine.pth")
    assert (save.location, save.kind, save.keep, save.forever) == (None, "other", None, False)


def test_two_requests_for_the_same_file_are_equal_whatever_is_called_afterwards():
    assert Save("a.pth", owner="x", on_lost=lambda: None) == Save("a.pth", owner="x")
    assert Save("a.pth", owner="x") != Save("a.pth", owner="y")
