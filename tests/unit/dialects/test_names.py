"""The registry of hook classes that two dialects share."""

import pytest

from hookloop.dialects.names import Names

CATALOGUE = {"OrderedDict": "collections:OrderedDict", "Fraction": "fractions:Fraction"}


def make_registry():
    return Names("KNOTS", f"{__name__}:CATALOGUE")


def make_class(name, module="somewhere"):
    return type(name, (), {"__module__": module})


def test_both_decorators_register_a_class_under_its_name():
    registry = make_registry()

    @registry.register()
    class Bowline: ...

    @registry.register_module(name="ignored")
    class Hitch: ...

    assert registry.get("Bowline") is Bowline
    assert registry.get("Hitch") is Hitch
    assert "ignored" not in registry


def test_a_class_can_be_registered_without_a_decorator():
    registry, kind = make_registry(), make_class("Bowline")
    assert registry.register(kind) is kind
    assert registry.get("Bowline") is kind


def test_the_catalogue_is_found_and_a_registered_class_replaces_its_row():
    from collections import OrderedDict

    registry = make_registry()
    assert registry.get("OrderedDict") is OrderedDict
    own = make_class("OrderedDict")
    registry.register(own)
    assert registry.get("OrderedDict") is own


def test_a_second_class_of_one_name_is_rejected_and_the_first_stays():
    registry, first = make_registry(), make_class("Bowline", "one")
    registry.register(first)
    with pytest.raises(AssertionError, match="'Bowline'.*KNOTS"):
        registry.register(make_class("Bowline", "two"))
    assert registry.get("Bowline") is first


def test_a_file_that_is_loaded_twice_may_register_twice():
    registry = make_registry()
    registry.register(make_class("Bowline", "one"))
    again = make_class("Bowline", "one")
    registry.register(again)
    assert registry.get("Bowline") is again


def test_an_unknown_name_is_a_key_error_with_the_nearest_of_both():
    registry = make_registry()
    registry.register(make_class("Bowline"))
    with pytest.raises(KeyError, match="KNOTS.*'Bowline'"):
        registry.get("Bowlin")
    with pytest.raises(KeyError, match="'Fraction'"):
        registry.get("Fractoin")


def test_registries_do_not_share_their_classes():
    registry = make_registry()
    registry.register(make_class("Bowline"))
    assert "Bowline" in registry
    assert "Bowline" not in make_registry()
    assert "Fraction" in make_registry()
