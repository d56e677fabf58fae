"""Read a config of emloop."""

import logging

import pytest

from hookloop_dialects.emloop.utils import load_config, parse_arg

CONFIG = """
model: {name: net, rate: 0.1}
hooks: [LogDir]
eval:
  test: {model: {rate: 0}, hooks: [LogProfile]}
  valid: {dataset: {size: 3}}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG)
    return str(path)


def test_a_change_is_read_as_yaml():
    assert parse_arg("a.b=[1, 2]") == ("a.b", [1, 2])
    assert parse_arg("a=x=y") == ("a", "x=y")
    with pytest.raises(AssertionError, match="'a' is not of the form name=value"):
        parse_arg("a")


def test_changes_are_applied(file):
    config = load_config(file, ["model.rate=1e-3", "new=2"])
    assert config["model"] == {"name": "net", "rate": 0.001} and config["new"] == 2
    assert config["hooks"] == ["LogDir"]


def test_a_stream_has_its_own_hooks_and_settings(file, caplog):
    config = load_config(file, override_stream="test")
    assert config["model"] == {"name": "net", "rate": 0} and config["hooks"] == ["LogProfile"]
    with caplog.at_level(logging.WARNING):
        config = load_config(file, override_stream="valid")
    assert config["dataset"] == {"size": 3} and config["hooks"] == []
    assert caplog.messages == ["eval.valid has no hooks, so there are none."]
    assert load_config(file, override_stream="other")["hooks"] == ["LogDir"]
