"""A config: its entries, its file, and the options that change it."""

import copy
import json

import pytest
import yaml

from hookloop_mmengine.config import Config


def make():
    return Config({"model": {"type": "Net", "depth": 18}, "steps": [{"name": "a"}, {"name": "b"}]})


def test_entries_are_keys_and_attributes():
    cfg = make()
    cfg.lr = 0.1
    cfg["seed"] = 3
    assert (cfg["lr"], cfg.seed, cfg.model.depth, cfg.get("nothing", 7)) == (0.1, 3, 18, 7)
    assert len(cfg) == 4
    assert list(cfg) == ["model", "steps", "lr", "seed"]
    del cfg.lr
    assert "lr" not in cfg


def test_something_else_than_a_dict_is_rejected():
    with pytest.raises(TypeError, match="cfg_dict must be a dict, but got <class 'list'>"):
        Config([1])


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"model.depth": 50}, {"type": "Net", "depth": 50}),
        ({"model.neck.size": 2}, {"type": "Net", "depth": 18, "neck": {"size": 2}}),
        ({"model": {"depth": 1}}, {"type": "Net", "depth": 1}),
        ({"model": {"_delete_": True, "type": "Other"}}, {"type": "Other"}),
    ],
)
def test_options_change_the_entries_of_a_path(options, wanted):
    cfg = make()
    cfg.merge_from_dict(options)
    assert cfg.model.to_dict() == wanted


def test_numbers_in_a_path_are_indices_of_lists():
    cfg = make()
    cfg.merge_from_dict({"steps.1.name": "c", "steps.0": {"size": 2}})
    assert cfg.to_dict()["steps"] == [{"name": "a", "size": 2}, {"name": "c"}]
    assert cfg.steps[0].size == 2


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("steps.5.name", KeyError, "Index 5 does not exist in list"),
        ("steps.name", TypeError, "'name' is not an index"),
        ("model.depth.more", TypeError, "there is no entry 'more' in 18"),
        ("model.type.a.b", TypeError, "there is no entry 'a' in 'Net'"),
    ],
)
def test_a_path_that_leads_nowhere_is_rejected(path, error, message):
    cfg = make()
    with pytest.raises(error, match=message):
        cfg.merge_from_dict({path: 1})
    assert cfg.to_dict() == make().to_dict()


def test_indices_can_be_forbidden():
    with pytest.raises(TypeError, match="is not an index"):
        make().merge_from_dict({"steps.0.name": "c"}, allow_list_keys=False)


def test_a_deep_copy_is_independent_and_keeps_the_file(tmp_path):
    (tmp_path / "a.py").write_text("model = dict(depth=1)\n")
    cfg = Config.fromfile(tmp_path / "a.py")
    copied = copy.deepcopy(cfg)
    copied.model.depth = 2
    assert cfg.model.depth == 1
    assert copied.filename == cfg.filename == str(tmp_path / "a.py")
    assert copied.text == "model = dict(depth=1)\n"


@pytest.mark.parametrize(("suffix", "load"), [(".json", json.loads), (".yaml", yaml.safe_load)])
def test_it_is_written_in_the_format_of_the_file(tmp_path, suffix, load):
    path = tmp_path / f"config{suffix}"
    assert make().dump(path) is None
    assert load(path.read_text()) == make().to_dict()
    assert Config.fromfile(path).to_dict() == make().to_dict()


def test_what_it_writes_in_python_is_read_again(tmp_path):
    cfg = make()
    cfg.dump(tmp_path / "config.py")
    assert cfg.dump() == cfg.pretty_text == (tmp_path / "config.py").read_text()
    assert Config.fromfile(tmp_path / "config.py").to_dict() == cfg.to_dict()


@pytest.mark.parametrize(
    ("text", "file_format"),
    [("a = dict(b=1)", ".py"), ("a: {b: 1}", ".yaml"), ('{"a": {"b": 1}}', ".json")],
)
def test_text_is_read_like_a_file(text, file_format):
    cfg = Config.fromstring(text, file_format)
    assert cfg.a.b == 1
    assert cfg.text == text


def test_text_in_another_format_is_rejected():
    with pytest.raises(OSError, match="Only py, yml, yaml and json"):
        Config.fromstring("a = 1", ".toml")


def test_predefined_variables_can_be_left_as_they_are(tmp_path):
    path = tmp_path / "config.py"
    path.write_text("name = '{{ fileBasename }}'\n")
    assert Config.fromfile(path).name == "config.py"
    assert Config.fromfile(path, use_predefined_variables=False).name == "{{ fileBasename }}"


def test_it_shows_its_path_and_entries():
    assert repr(Config({"a": 1})) == "Config (path: None): {'a': 1}"
