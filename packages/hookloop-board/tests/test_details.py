"""Config, environment and log of a run."""

import json

from board_runs import entry_of, write_run
from hookloop_board.collection import Collection
from hookloop_board.details import config_view, environment_view, log_view

CONFIG = "seed: 0\noptimizer:\n  type: SGD\n  lr: 0.1\nhooks:\n- type: A\n  every: 2\n"


def test_a_config_has_its_lines_and_what_the_command_line_has_set(tmp_path):
    path = write_run(tmp_path / "a", config=CONFIG)
    starts = [{"iter": 0, "command": ["hookloop", "train", "c.yaml", "optimizer.lr=0.1", "--x=1"]}]
    (path / "environment.json").write_text(json.dumps({"starts": starts}))
    found = config_view(entry_of(tmp_path)[1], None)
    sources = {one["key"]: one["source"] for one in found["values"]}
    assert found["text"] == CONFIG
    assert (
        sources["optimizer.type"] == "config.yaml:3" and sources["hooks.0.every"] == "config.yaml:7"
    )
    assert sources["optimizer.lr"] == "command line"
    assert not any(one["differs"] for one in found["values"])


def test_two_configs_are_compared(tmp_path):
    write_run(tmp_path / "a", config="seed: 0\nlr: 1\n")
    write_run(tmp_path / "b", config="seed: 0\nlr: 2\nnew: 3\n")
    one, other = Collection([tmp_path]).entries().values()
    values = {value["key"]: value for value in config_view(one, other)["values"]}
    assert not values["seed"]["differs"]
    assert values["lr"]["differs"] and values["lr"]["other"] == 2
    assert values["new"] == {
        "key": "new",
        "value": None,
        "source": None,
        "differs": True,
        "other": 3,
    }


def test_a_run_without_a_config_has_none(tmp_path):
    write_run(tmp_path / "a", config="")
    assert config_view(entry_of(tmp_path)[1], None) == {"text": "", "values": []}


def test_a_run_of_a_script_has_what_it_was_trained_with(tmp_path):
    path = write_run(tmp_path / "a", config="seed: 1\n")
    (path / "trained_with.yaml").write_text("optimizer:\n  lr: 0.5\nseed: null\n")
    found = config_view(entry_of(tmp_path)[1], None)
    values = {one["key"]: (one["value"], one["source"]) for one in found["values"]}
    assert list(values.items()) == [
        ("seed", (1, "config.yaml:1")),
        ("optimizer.lr", (0.5, "trained_with.yaml:2")),
    ]


def test_environments_are_compared(tmp_path):
    for name, version in (("a", "3.11"), ("b", "3.12")):
        path = write_run(tmp_path / name)
        start = {"iter": 0, "python": version, "git": {"commit": "abc", "dirty": True}}
        (path / "environment.json").write_text(json.dumps({"starts": [start]}))
    one, other = Collection([tmp_path]).entries().values()
    found = environment_view(one, other)
    assert found["differences"] == [{"key": "python", "value": "3.11", "other": "3.12"}]
    assert found["source"] == {"commit": "abc", "dirty": True, "zip": False}


def test_the_log_is_read_from_its_end(tmp_path):
    path = write_run(tmp_path / "a")
    text = "".join(f"line {number}\n" for number in range(1000))
    (path / "run.log").write_text(text)
    entry = entry_of(tmp_path)[1]
    tail = log_view(entry, None, 50)
    assert tail["text"].startswith("line") and tail["end"] == tail["size"] == len(text)
    before = log_view(entry, tail["begin"], 50)
    assert before["text"] + tail["text"] == text[before["begin"] :]
    assert log_view(entry, 10**15, 10**9)["text"] == text


def test_what_is_new_in_a_log_comes_in_whole_lines(tmp_path):
    log = write_run(tmp_path / "a") / "run.log"
    log.write_bytes(b"one\ntwo\nhal")
    entry = entry_of(tmp_path)[1]
    known = log_view(entry, None, 100, after=4)
    assert (known["text"], known["begin"], known["end"]) == ("two\n", 4, 8)
    log.write_bytes(b"one\ntwo\nhalf\n")
    assert log_view(entry, None, 100, after=8)["text"] == "half\n"
    assert log_view(entry, None, 100, after=13)["text"] == ""
    assert log_view(entry, None, 2, after=8)["text"] == "ha"  # A line that is longer than a part.
    shortened = log_view(entry, None, 100, after=99)
    assert shortened["begin"] == shortened["size"] == 13


def test_a_log_that_is_missing_or_a_link_shows_nothing(tmp_path):
    path = write_run(tmp_path / "runs" / "a")
    entry = entry_of(tmp_path / "runs")[1]
    assert log_view(entry, None, 100)["size"] == 0
    (tmp_path / "secret").write_text("SECRET")
    (path / "run.log").symlink_to(tmp_path / "secret")
    try:
        shown = log_view(entry, None, 100)["text"]
    except OSError:
        shown = ""
    assert "SECRET" not in shown
