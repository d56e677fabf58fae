"""Objects that are found by name."""

import pytest

from hookloop_mmengine.utils import ManagerMeta, ManagerMixin


@pytest.fixture
def kind():
    class Thing(ManagerMixin):
        def __init__(self, name, size=0):
            super().__init__(name)
            self.size = size

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


def test_without_any_object_there_is_no_current_one(kind):
    with pytest.raises(RuntimeError, match=r"Before calling Thing.get_current_instance\(\)"):
        kind.get_current_instance()


def test_each_class_has_objects_of_its_own(kind):
    class Special(kind):
        pass

    assert Special.get_instance("a") is not kind.get_instance("a")
    assert isinstance(Special, ManagerMeta)


def test_arguments_for_an_object_that_exists_are_a_warning(kind):
    kind.get_instance("a")
    with pytest.warns(UserWarning, match="named of a has been created"):
        assert kind.get_instance("a", size=4).size == 0


def test_a_class_without_a_name_is_rejected():
    with pytest.raises(AssertionError, match="must have the `name` argument"):

        class Nameless(ManagerMixin):
            def __init__(self):
                pass

    with pytest.raises(AssertionError, match="non-empty string"):
        ManagerMixin("")


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
