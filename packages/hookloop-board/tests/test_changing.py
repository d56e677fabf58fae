"""What the page may change."""

import json

import pytest

from board_runs import entry_of, write_run
from hookloop.errors import HookloopError
from hookloop.runs.lock import RunLock
from hookloop_board.changing import ask_run, set_labels


def test_labels_are_written_and_those_of_the_config_stay_there(tmp_path):
    path = write_run(tmp_path / "a", config="tags: [base]\nnotes: mine\n")
    found = set_labels(entry_of(tmp_path)[1], {"tags": ["base", "good"], "note": "mine"})
    assert found == {"tags": ["base", "good"], "note": "mine"}
    assert json.loads((path / "tags.json").read_text()) == {"tags": ["good"], "note": ""}


@pytest.mark.parametrize("body", [{"tags": "x"}, {"tags": [1]}, {"note": 3}])
def test_labels_must_be_text(tmp_path, body):
    write_run(tmp_path / "a")
    with pytest.raises(ValueError, match="must be"):
        set_labels(entry_of(tmp_path)[1], body)
    with pytest.raises(HookloopError, match="not a tag"):
        set_labels(entry_of(tmp_path)[1], {"tags": ["a b"]})


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"do": "rm"},
        {"do": "set"},
        {"do": "stop", "settings": {"a": 1}},
        {"do": "set", "settings": {"a": "x"}},
    ],
)
def test_only_a_request_is_asked(tmp_path, body):
    write_run(tmp_path / "a")
    with pytest.raises(ValueError, match="'do'|settings"):
        ask_run(entry_of(tmp_path)[1], body, lambda: True)


def test_the_end_of_the_server_ends_the_wait_and_withdraws_the_request(tmp_path):
    path = write_run(tmp_path / "a", summary={"status": "running", "ended": None})
    lock = RunLock(path)
    lock.take()
    try:
        answer = ask_run(entry_of(tmp_path)[1], {"do": "save"}, lambda: True)
    finally:
        lock.give_back()
    assert answer["answered"] is False and not list((path / "ask").iterdir())
