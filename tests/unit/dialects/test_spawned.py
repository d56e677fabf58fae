"""What is called in spawned processes, before they import the script."""

import multiprocessing
import os
import pickle
import sys
from multiprocessing import spawn

from hookloop.dialects.spawned import InSpawned


def set_variable(value):
    os.environ["HOOKLOOP_TEST_SPAWNED"] = value


def read_variable(queue):
    queue.put(os.environ.get("HOOKLOOP_TEST_SPAWNED"))


def value_in_spawned_process():
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=read_variable, args=(queue,))
    process.start()
    value = queue.get(timeout=120)
    process.join()
    return value


def test_a_function_is_called_in_a_spawned_process_until_it_is_undone(monkeypatch):
    monkeypatch.delenv("HOOKLOOP_TEST_SPAWNED", raising=False)
    with InSpawned("hookloop_test", set_variable, "here"):
        assert value_in_spawned_process() == "here"
    assert value_in_spawned_process() is None
    assert "HOOKLOOP_TEST_SPAWNED" not in os.environ


def test_the_function_can_be_imported_from_where_its_parent_imports(tmp_path, monkeypatch):
    (tmp_path / "spawned_neighbour.py").write_text("def note(calls):\n    calls.append(1)\n")
    monkeypatch.syspath_prepend(tmp_path)
    import spawned_neighbour

    with InSpawned("hookloop_test", spawned_neighbour.note, []):
        call = spawn.get_preparation_data("worker")["hookloop_test"]
    _, (_, path) = call.__reduce__()
    assert str(tmp_path) in path
    monkeypatch.setattr(sys, "path", list(sys.path))
    pickle.loads(pickle.dumps(call))
    assert sys.path == path


def test_two_are_called_and_undone_one_by_one():
    with InSpawned("hookloop_a", print), InSpawned("hookloop_b", print):
        assert {"hookloop_a", "hookloop_b"} <= set(spawn.get_preparation_data("worker"))
    assert not {"hookloop_a", "hookloop_b"} & set(spawn.get_preparation_data("worker"))
