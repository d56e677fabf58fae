"""Grafts: what is replaced comes back, and what cannot be grafted is named."""

import pickle
from multiprocessing import spawn

from hookloop import dialects
from hookloop.dialects.grafts import Graft, Grafts


class Parent:
    def run(self):
        return "parent"


class Child(Parent):
    pass


def test_what_was_inherited_is_inherited_again():
    with Graft() as graft:
        graft.replace(Child, "run", lambda self: "ours")
        assert Child().run() == "ours" and Parent().run() == "parent"
    assert Child().run() == "parent" and "run" not in vars(Child)


def graft_with(text):
    graft = Graft()
    graft.replace(Parent, "run", lambda self: text)
    return graft


def test_what_was_replaced_twice_is_set_back():
    with Grafts({"a": lambda: graft_with("first"), "b": lambda: graft_with("second")}):
        assert Parent().run() == "second"
    assert Parent().run() == "parent"


def test_a_package_is_grafted_once():
    with Grafts({"a": lambda: graft_with("first")}):
        with Grafts({"a": lambda: graft_with("second")}):
            assert Parent().run() == "first"
        assert Parent().run() == "first"
    assert Parent().run() == "parent"
    with Grafts({"a": lambda: graft_with("second")}):
        assert Parent().run() == "second"


def test_a_spawned_process_grafts_before_it_imports_the_script(monkeypatch):
    grafted = []
    monkeypatch.setattr(dialects, "graft", lambda *names: grafted.append(names))
    with Grafts({"a": Graft}):
        data = pickle.dumps(spawn.get_preparation_data("worker")["hookloop_grafts"])
    assert "hookloop_grafts" not in spawn.get_preparation_data("worker")
    pickle.loads(data)  # What the other process does first.
    assert grafted == [("a",)]
