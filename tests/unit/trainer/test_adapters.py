"""Hooks of other systems: which dialect they belong to, and what stands for them."""

import sys
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest
from tests.tiny import make_trainer

from hookloop import Hook
from hookloop.errors import HookError
from hookloop.trainer import adapters
from hookloop.trainer.adapters import Dialect, adapt, adapt_all, dialect_of, dialect_of_class, named

FIND = adapters.dialects.__wrapped__  # Without the cache, which lasts as long as the process.


class Knot:
    """The base class of another system's hooks."""


class Bowline(Knot):
    pass


class Tie(Hook):
    """What stands for a knot."""

    def __init__(self, knot):
        self.knot = knot
        self.name = type(knot).__name__.lower()

    def after_epoch(self, run):
        pass


def tie_twice(knot):
    return [Tie(knot), Tie(knot).named("end")]


KNOTS = Dialect(name="knots", bases=((__name__, "Knot"),), adapt=lambda knot: [Tie(knot)])
ROPES = Dialect(name="ropes", bases=(("ropes", "Rope"),), adapt=tie_twice)


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    """Two dialects, neither of which is ours."""
    monkeypatch.setattr(adapters, "dialects", lambda: {"knots": KNOTS, "ropes": ROPES})


class Native(Hook):
    def after_epoch(self, run):
        pass


def test_a_native_hook_stays_as_it_is():
    hook = Native()
    assert adapt(hook) == [hook]
    assert adapt(Native) == [Native]  # A class is the plan's to reject.


def test_a_foreign_hook_is_known_by_its_base_class():
    (hook,) = adapt(knot := Bowline())
    assert isinstance(hook, Tie) and hook.knot is knot
    assert dialect_of_class(Bowline) is KNOTS


def test_a_base_of_that_name_in_another_package_is_not_the_same():
    other = type("Knot", (), {"__module__": "other.package"})
    assert dialect_of(other()) is None
    longer = type("Knot", (), {"__module__": f"{__name__}_too"})
    assert dialect_of(longer()) is None
    inside = type("Knot", (), {"__module__": f"{__name__}.inside"})
    assert dialect_of(inside()) is KNOTS


def test_an_attribute_decides_before_the_base_class():
    class Splice(Knot):
        dialect = "ropes"

    assert dialect_of(Splice()) is ROPES
    assert [hook.name for hook in adapt(Splice())] == ["splice", "end"]


def test_an_unknown_dialect_is_rejected_with_the_nearest():
    class Wrong(Knot):
        dialect = "knotts"

    with pytest.raises(HookError, match="'knots'"):
        adapt(Wrong())
    with pytest.raises(HookError, match="'sails'"):
        named("sails")


def test_what_no_dialect_knows_is_left_for_the_plan_to_reject():
    thing = object()
    assert adapt(thing) == [thing]
    with pytest.raises(HookError, match="is not a hook"):
        make_trainer(hooks=[thing]).check()


def test_foreign_hooks_of_one_name_get_numbers_and_native_ones_do_not():
    native = Native().named("bowline")
    hooks = adapt_all([Bowline(), Native(), Bowline(), native, Bowline()])
    names = [hook.name for hook in hooks]
    assert names == ["bowline", "native", "bowline_2", "bowline", "bowline_4"]
    with pytest.raises(HookError, match="'bowline'"):
        make_trainer(hooks=[Bowline(), native]).check()


def test_a_trainer_takes_foreign_hooks_with_its_own():
    trainer = make_trainer(hooks=[Bowline(), Native(), Bowline()])
    assert [row.hook for row in trainer.timetable()] == ["bowline", "native", "bowline_2"]
    by_name = make_trainer(hooks={"mine": Bowline(), "other": Native()})
    assert [row.hook for row in by_name.timetable()] == ["mine", "other"]


# --- plug-ins ------------------------------------------------------------------------------------


def found_among(monkeypatch, *entries):
    """Return the dialects that are found where some entry points are installed."""
    listed = [EntryPoint(name, value, adapters.GROUP) for name, value in entries]
    monkeypatch.setattr(adapters, "entry_points", lambda group: listed)
    return FIND()


@pytest.fixture
def plugins(monkeypatch):
    """A module of dialects, one of them a second one of the same name."""
    module = ModuleType("sailing")
    module.FIRST = Dialect(name="sails", bases=(), adapt=tie_twice)
    module.SECOND = Dialect(name="sails", bases=(("x", "X"),), adapt=tie_twice)
    module.MASTS = Dialect(name="masts", bases=(), adapt=tie_twice)
    module.NOT_ONE = {"name": "oars"}
    monkeypatch.setitem(sys.modules, "sailing", module)


@pytest.mark.usefixtures("plugins")
def test_dialects_are_found_by_their_entry_points(monkeypatch, caplog):
    found = found_among(monkeypatch, ("b", "sailing:FIRST"), ("a", "sailing:MASTS"))
    assert list(found) == ["masts", "sails"] and not caplog.messages
    with pytest.raises(TypeError):
        found["other"] = KNOTS


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("sailing:NOTHING", "'bad' of an unknown package cannot be loaded: AttributeError"),
        ("sailing_lost:FIRST", "'bad' of an unknown package cannot be loaded: ModuleNotFound"),
        ("sailing:NOT_ONE", "'sailing:NOT_ONE' is a dict, not a hookloop.dialects.Dialect"),
        ("sailing:SECOND", "Two packages bring a dialect 'sails': the first is used"),
    ],
)
@pytest.mark.usefixtures("plugins")
def test_a_broken_plug_in_is_reported_and_the_others_are_used(value, message, monkeypatch, caplog):
    entries = [("bad", value), ("a", "sailing:MASTS"), ("aa", "sailing:FIRST")]
    found = found_among(monkeypatch, *entries)
    assert list(found) == ["masts", "sails"]
    assert found["sails"].bases == ()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert message in caplog.text
