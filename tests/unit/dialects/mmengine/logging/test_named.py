"""Objects that are found by name."""

from typing import ClassVar

import pytest

from hookloop.dialects.mmengine.logging.named import Named


@pytest.fixture
def kind():
    class Thing(Named):
        _instances: ClassVar = {}

        def __init__(self, name, size=0):
            self.instance_name, self.size = name, size

    return Thing


def test_a_name_makes_one_object(kind):
    thing = kind.get_instance("a", size=3)
    assert (thing.instance_name, thing.size) == ("a", 3)
    assert kind.get_instance("a") is thing
    assert kind.get_instance("b") is not thing


def test_the_newest_object_is_the_current_one(kind):
    kind.get_instance("a")
    newest = kind.get_instance("b")
    kind.get_instance("a")  # Asking for an older one does not make it current.
    assert kind.get_current_instance() is newest


def test_without_any_object_the_current_one_is_made(kind):
    assert kind.get_current_instance().instance_name == "mmengine"


def test_it_knows_which_names_there_are(kind):
    kind.get_instance("a")
    assert kind.check_instance_created("a")
    assert not kind.check_instance_created("b")


def test_an_object_that_counts_as_false_is_found_again(kind):
    kind.__len__ = lambda self: 0
    assert kind.get_instance("a") is kind.get_instance("a")


def test_a_name_is_text(kind):
    with pytest.raises(AssertionError, match="type of name should be str, but got <class 'int'>"):
        kind.get_instance(3)
