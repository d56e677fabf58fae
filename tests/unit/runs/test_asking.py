import json
import os
from pathlib import Path
from threading import Thread

import pytest

from hookloop.errors import HookloopError
from hookloop.runs.asking import (
    ANSWERS,
    ASK,
    LARGEST,
    Request,
    ask,
    give_answer,
    identity,
    take_requests,
)
from hookloop.runs.layout import RunDir
from hookloop.runs.life import Holder
from hookloop.runs.lock import RunLock

OWN = identity(Holder.this())


@pytest.fixture
def live(tmp_path):
    """A directory that this process trains in, as far as others can see."""
    run = RunDir.create(tmp_path / "run")
    run.write_summary({"status": "running"})
    lock = RunLock(run.path)
    lock.take()
    yield run.path
    lock.give_back()


def put(directory: Path, name: str, content: object) -> None:
    (directory / ASK).mkdir(exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    (directory / ASK / name).write_text(text)


def test_a_request_is_answered_once_and_nothing_is_left(live):
    taken = []

    def answer_it():
        while not taken:
            taken.extend(take_requests(live, OWN))
        give_answer(live, taken[0][0], {"done": True, "iter": 7})

    thread = Thread(target=answer_it)
    thread.start()
    answer = ask(live, "set", {"optimizer.lr": 0.1}, wait=20)
    thread.join()
    number, request = taken[0]
    assert request == Request(number, "set", {"optimizer.lr": 0.1}, OWN, request.by)
    assert answer == {"id": number, "do": "set", "answered": True, "done": True, "iter": 7}
    assert not [*(live / ASK).iterdir(), *(live / ANSWERS).iterdir()]


def test_a_request_that_nobody_takes_is_withdrawn(live):
    answer = ask(live, "save", wait=0)
    assert (answer["answered"], answer["done"]) == (False, False)
    assert "withdrawn" in str(answer["reason"])
    assert not list((live / ASK).iterdir())


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"do": "exec"}, "'do' must be one of"),
        ([1], "'do' must be one of"),
        ("{", "not JSON"),
        ("[" * 100_000, "larger than"),
        ({"do": "save", "then": "rm"}, "unknown keys: then"),
        ({"do": "set"}, "needs settings"),
        ({"do": "stop", "settings": {"optimizer.lr": 1}}, "nothing else has them"),
        ({"do": "set", "settings": {"optimizer.lr": "1e-3"}}, "finite numbers"),
        ({"do": "set", "settings": {"optimizer.lr": True}}, "finite numbers"),
        ('{"do": "set", "settings": {"optimizer.lr": NaN}}', "finite numbers"),
        ({"do": "save", "by": "x" * 600}, "short texts"),
        ({"do": "save", "to": "process 1 on elsewhere"}, "another process"),
    ],
)
def test_what_is_not_a_request_is_rejected(tmp_path, content, reason):
    put(tmp_path, "a1.json", content)
    ((number, found),) = take_requests(tmp_path, OWN)
    assert number == "a1"
    assert reason in found
    assert not list((tmp_path / ASK).iterdir())


def test_links_pipes_drafts_and_foreign_names_are_left_alone(tmp_path):
    put(tmp_path, "target", {"do": "stop"})
    (tmp_path / ASK / "link.json").symlink_to(tmp_path / ASK / "target")
    os.mkfifo(tmp_path / ASK / "pipe.json")
    put(tmp_path, ".draft.json", {"do": "stop"})
    put(tmp_path, "NAME.json", {"do": "stop"})
    put(tmp_path, "large.json", " " * (LARGEST + 1))
    assert [number for number, _ in take_requests(tmp_path, OWN)] == ["large"]
    assert list(take_requests(tmp_path / "nothing", OWN)) == []


def test_a_folder_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ASK).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HookloopError, match="symbolic link"):
        list(take_requests(tmp_path, OWN))


def test_only_a_live_run_can_be_asked(tmp_path):
    with pytest.raises(HookloopError, match="not the directory of a run"):
        ask(tmp_path, "save")
    run = RunDir.create(tmp_path / "run")
    run.write_summary({"status": "completed", "reason": ""})
    with pytest.raises(HookloopError, match="is not running: completed"):
        ask(run.path, "save")
    run.write_summary({"status": "running"})
    with pytest.raises(HookloopError, match="is not running: dead"):
        ask(run.path, "save")
    assert not (run.path / ASK).exists()
