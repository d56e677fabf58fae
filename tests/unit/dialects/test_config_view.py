"""The config in the form that foreign hooks read."""

import pytest

from hookloop.dialects.config_view import ConfigView, with_own_values

CONFIG = {"LOG_FREQUENCY": 7, "MODEL": {"NAME": "tiny", "HEADS": [{"size": 3}]}, "get": "shadowed"}


def test_values_are_items_and_attributes_at_every_depth():
    view = ConfigView(CONFIG)
    assert view.LOG_FREQUENCY == view["LOG_FREQUENCY"] == 7
    assert view.MODEL.NAME == view["MODEL"]["NAME"] == "tiny"
    assert view.MODEL.HEADS == [{"size": 3}]  # A list stays as it is.


def test_methods_of_a_dict_are_not_hidden_by_keys():
    view = ConfigView(CONFIG)
    assert view.get("LOG_FREQUENCY") == 7
    assert view["get"] == "shadowed"


def test_a_missing_key_names_the_nearest_and_how_to_set_it():
    view = ConfigView(CONFIG)
    with pytest.raises(KeyError, match=r"'MODLE'.*'MODEL'.*Setup\(config="):
        view["MODLE"]
    with pytest.raises(AttributeError, match="'NAME'"):
        view.MODEL.NAMES  # noqa: B018 - the access is what is tested
    assert not hasattr(view, "MODLE")
    assert getattr(view, "MODLE", 3) == 3


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("LOG_FREQUENCY", 7),
        ("MODEL.NAME", "tiny"),
        ("MODEL.WIDTH", "default"),
        ("DATA.TRAIN", "default"),
        ("LOG_FREQUENCY.deeper", "default"),
        ("MODEL.NAME.deeper", "default"),
    ],
)
def test_a_path_leads_to_its_value_or_the_default(path, found):
    assert ConfigView(CONFIG).find(path, "default") == found
    assert ConfigView({}).find(path) is None


def test_the_config_itself_is_not_changed():
    config = {"MODEL": {"NAME": "tiny"}}
    ConfigView(config)["MODEL"]["NAME"] = "large"
    assert config == {"MODEL": {"NAME": "tiny"}}


def test_values_of_a_users_own_are_among_the_others():
    assert with_own_values({"vars": {"a": 1, "b": 2}, "b": 3}) == {
        "vars": {"a": 1, "b": 2}, "a": 1, "b": 3,
    }  # fmt: skip
    assert with_own_values({"vars": 4}) == {"vars": 4}
