"""What all dialects share: a foreign hook becomes a native one."""

from typing import ClassVar

import pytest
from tests.tiny import make_trainer

from hookloop.dialects.adapter import Adapter, Facade, ForeignAttributeError, Mount, base_of
from hookloop.engine.hook import Hook
from hookloop.errors import HookError


class View(Facade):
    role = "task"
    hints: ClassVar = {"gone": "run.metrics"}

    @property
    def steps(self):
        return self.run.progress.iter


class Base:
    """A foreign base class: what is not overridden need not be called."""

    def on_step(self, task):
        raise AssertionError("not overridden, so not called")

    def on_end(self, task, success):
        raise AssertionError("not overridden, so not called")


def bind_step(method, adapter):
    def call(run):
        adapter.facade.hook = adapter.name
        method(adapter.facade)

    return call


def bind_end(method, adapter):
    return lambda run: method(adapter.facade, success=True)


MOUNTS = (
    Mount("after_train_iter", "on_step", bind_step),
    Mount("after_train", "on_end", bind_end, 1, ("success",)),
    Mount("after_epoch", "on_end", bind_end, 1, ("success",)),
)


def adapt(foreign, **options):
    return Adapter(foreign, MOUNTS, facade=View, base=Base, **options)


class Counting(Base):
    def __init__(self):
        self.seen = []

    def on_step(self, task):
        self.seen.append(task.steps)

    def state_dict(self):
        return {"seen": len(self.seen)}

    def load_state_dict(self, state):
        self.seen = [0] * state["seen"]


def test_only_overridden_methods_are_attached():
    rows = make_trainer(hooks=[adapt(Counting())]).timetable()
    assert [row.point for row in rows] == ["before_run", "after_train_iter"]


def test_a_method_sees_the_run_through_the_facade():
    foreign = Counting()
    make_trainer(hooks=[adapt(foreign)]).train()
    assert foreign.seen == [1, 2, 3]


def test_hooks_of_a_dialect_share_one_facade():
    one, other = adapt(Counting()), adapt(Counting()).named("other")
    trainer = make_trainer(hooks=[one, other])
    trainer.train()
    assert one.facade is other.facade
    assert list(trainer.run._internals.shared.values()) == [one.facade]


def test_a_method_can_act_at_several_points():
    calls = []

    class Ending(Base):
        def on_end(self, task, success):
            calls.append(success)

    make_trainer(hooks=[adapt(Ending())], max_epochs=2).train()
    assert calls == [True] * 3


def test_the_message_for_a_missing_attribute_names_the_nearest():
    class Asking(Base):
        def on_step(self, task):
            return task.step

    with pytest.raises(ForeignAttributeError) as caught:
        make_trainer(hooks=[adapt(Asking())]).train()
    text = str(caught.value)
    assert "'asking' asks for task.step" in text
    assert "Did you mean 'steps'?" in text


def test_the_message_for_an_attribute_of_a_project_says_where_to_set_it():
    class Asking(Base):
        def on_step(self, task):
            task.seen = task.teacher

    class Setting(Base):
        def on_step(self, task):
            task.teacher = "mine"

    with pytest.raises(ForeignAttributeError, match=r"task\.teacher"):
        make_trainer(hooks=[adapt(Asking())]).train()
    asking = adapt(Asking())
    make_trainer(hooks=[adapt(Setting()), asking]).train()
    assert asking.facade.seen == "mine"


def test_the_message_for_an_attribute_with_a_hint_contains_it():
    class Asking(Base):
        def on_step(self, task):
            return task.gone

    with pytest.raises(HookError, match="task.gone.*run.metrics"):
        make_trainer(hooks=[adapt(Asking())]).train()


def test_hasattr_works_on_a_facade():
    class Asking(Base):
        def on_step(self, task):
            assert not hasattr(task, "nothing")
            assert getattr(task, "nothing", 3) == 3

    make_trainer(hooks=[adapt(Asking())]).train()


def test_a_method_that_cannot_be_inspected_is_accepted():
    class Builtin(Base):
        on_step = dict.fromkeys  # Some builtins have no signature.

    assert adapt(Builtin()).acts


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, ("quiet", "raise")),
        ({"name": "mine", "on_error": "disable"}, ("mine", "disable")),
        ({"name": len}, ("quiet", "raise")),
    ],
)
def test_what_a_config_sets_on_a_hook_is_read_from_the_instance(attributes, expected):
    class Quiet(Base):
        name = "a class attribute may mean something else"

    foreign = Quiet()
    vars(foreign).update(attributes)
    adapter = adapt(foreign)
    assert (adapter.name, adapter.on_error) == expected
    assert not adapter.acts


def test_only_hooks_that_are_not_ours_are_kept_from_the_random_numbers_of_the_training():
    class Declared(Base):
        draws_random_numbers = False

    ours = type("Ours", (Base,), {"__module__": "hookloop_dialects.somewhere"})
    assert adapt(Counting()).draws_random_numbers
    assert not adapt(Declared()).draws_random_numbers
    assert not adapt(ours()).draws_random_numbers


@pytest.mark.parametrize(
    ("module", "name", "found"),
    [
        ("knots", "Knot", True),
        ("knots.base.deep", "Knot", True),
        ("knots_extra", "Knot", False),
        ("my.knots", "Knot", False),
        ("knots", "Rope", False),
    ],
)
def test_a_base_class_is_found_by_package_and_name(module, name, found):
    base = type(name, (), {"__module__": module})
    mine = type("Mine", (type("Between", (base,), {}),), {})()
    assert base_of(mine, [("ropes", "Rope"), ("knots", "Knot")]) is (base if found else None)


def test_a_method_set_on_the_instance_is_called():
    foreign = Counting()
    foreign.on_end = lambda task, success: foreign.seen.append(success)
    make_trainer(hooks=[adapt(foreign)], max_iters=1).train()
    assert foreign.seen == [1, True]


def test_a_facade_can_be_probed_before_it_is_initialised():
    empty = View.__new__(View)
    with pytest.raises(AttributeError, match="__deepcopy__"):
        empty.__deepcopy__  # noqa: B018 - the access is what is tested
    with pytest.raises(ForeignAttributeError, match="task.nothing"):
        empty.nothing  # noqa: B018 - the access is what is tested


def test_a_wrong_signature_is_rejected_at_once():
    class Wrong(Base):
        def on_end(self, task, result):
            pass

    with pytest.raises(HookError, match=r"Wrong.on_end.*\(task, result\)"):
        adapt(Wrong())


def test_state_is_saved_and_resumed(tmp_path):
    from hookloop.hooks import SaveCheckpoint

    options = {"run_dir": tmp_path / "run"}
    make_trainer(hooks=[adapt(Counting()), SaveCheckpoint()], **options).train()
    again = Counting()
    hooks = [adapt(again), SaveCheckpoint()]
    make_trainer(hooks=hooks, max_epochs=2, resume=True, **options).train()
    assert len(again.seen) == 6


def test_an_unknown_object_is_rejected_by_the_plan():
    with pytest.raises(HookError, match="is not a hook"):
        make_trainer(hooks=[Counting()]).train()


@pytest.mark.parametrize(
    ("declared", "writes"),
    [(("val/score",), ("val/score",)), (["val/a"], ("val/a",)), ("val/a", ()), (print, ())],
)
def test_a_foreign_hook_may_declare_what_it_writes(declared, writes):
    class Writing(Base):
        pass

    Writing.writes = declared
    assert adapt(Writing()).writes == writes


def test_a_facade_lists_its_hooks_and_names_the_loggers_to_forward(tmp_path):
    class Logging(View):
        loggers = ("foreign.system",)

    class Mine(Base):
        def on_step(self, task):
            self.task = task

    first, second = Mine(), Mine()
    mounts = [Mount("after_train_iter", "on_step", bind_step)]
    adapters = [
        Adapter(one, mounts, facade=Logging, base=Base).named(name)
        for one, name in ((first, "a"), (second, "b"))
    ]
    make_trainer(hooks=[*adapters, Hook()], run_dir=tmp_path).train()
    assert first.task.adapters == adapters
    assert Logging.logger_names() == ("foreign.system",)


class Ending(Base):
    def __init__(self):
        self.seen = []

    def on_run_end(self, task):
        self.seen.append("end")

    def on_failure(self, task):
        self.seen.append(task.steps)


class Failing(Hook):
    priority = "HIGHEST"

    def before_run(self, run):
        raise ValueError("no start")


def test_a_hook_that_was_never_started_is_not_ended_and_hears_of_the_failure():
    hook = Ending()
    mounts = (
        Mount("after_run", "on_run_end", bind_step),
        Mount(
            "on_exception",
            "on_failure",
            lambda method, adapter: lambda run, error: method(adapter.facade),
        ),
    )
    adapted = Adapter(hook, mounts, facade=View, base=Base)
    with pytest.raises(ValueError, match="no start") as caught:
        make_trainer(hooks=[Failing(), adapted]).train()
    assert hook.seen == [0]
    assert not any("while ending" in note for note in caught.value.__notes__)
