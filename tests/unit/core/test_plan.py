import logging

import pytest
from tests.tiny import make_data, make_trainer

from hookloop.core.hook import Hook, Priority, limit
from hookloop.core.plan import Plan, fire
from hookloop.core.points import Point, PointTable
from hookloop.errors import HookError, MetricError


def plan(*hooks: Hook, produced: tuple[str, ...] = ()) -> Plan:
    return Plan(hooks, PointTable(), produced)


def order_at(compiled: Plan, point: str) -> list[str]:
    return [hook.name for hook in compiled.calls(point).hooks]


class Acts(Hook):
    def after_train_iter(self, run):
        pass


def test_only_hooks_that_implement_a_point_are_called_at_it():
    class Elsewhere(Hook):
        def before_run(self, run):
            pass

    compiled = plan(Acts(), Elsewhere())
    assert order_at(compiled, "after_train_iter") == ["acts"]
    assert order_at(compiled, "before_run") == ["elsewhere"]
    assert order_at(compiled, "after_run") == []


def test_order_is_by_priority_and_ties_stay_as_given():
    hooks = []
    for name, priority in (("c", "low"), ("a", 0), ("d", "LOW"), ("b", Priority.HIGH)):
        hook = Acts().named(name)
        hook.priority = priority
        hooks.append(hook)
    assert order_at(plan(*hooks), "after_train_iter") == ["a", "b", "c", "d"]


def test_default_hooks_come_before_the_users_of_the_same_priority():
    class Mine(Hook):
        def before_train_epoch(self, run):
            pass

    trainer = make_trainer(default_hooks={"console": None}, hooks=[Mine()])
    rows = [row.hook for row in trainer.timetable() if row.point == "before_train_epoch"]
    assert rows == ["timing", "sampler", "mine"]


def test_a_misspelt_mount_point_is_refused_with_the_nearest_name():
    class Typo(Hook):
        def after_trian_iter(self, run):
            pass

    with pytest.raises(HookError, match="Typo.after_trian_iter.*Did you mean 'after_train_iter'"):
        plan(Typo())


@pytest.mark.parametrize("name", ["befor_run", "on_excepton", "after_val_batch", "aftertrain_iter"])
def test_other_misspellings_are_refused(name):
    kind = type("Typo", (Hook,), {name: lambda self, run: None})
    with pytest.raises(HookError, match=name):
        plan(kind())


def test_ordinary_methods_and_attributes_are_let_alone():
    class Fine(Hook):
        on_plateau = 3

        def reset(self):
            pass

        def train(self):
            pass

        def before(self):
            pass

    plan(Fine())


def test_a_wrong_signature_is_refused():
    class TooFew(Hook):
        def after_val_epoch(self, run):
            pass

    class TooMany(Hook):
        def after_train_iter(self, run, batch_idx):
            pass

    with pytest.raises(HookError, match=r"after_val_epoch\(run, metrics\)"):
        plan(TooFew())
    with pytest.raises(
        HookError, match=r"TooMany.after_train_iter has the signature \(run, batch_idx\)"
    ):
        plan(TooMany())


def test_a_signature_with_defaults_or_stars_is_accepted():
    class Loose(Hook):
        def after_train_iter(self, run, extra=None):
            pass

        def after_val_epoch(self, *args):
            pass

    plan(Loose())


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("reads", "val/loss", r"Acts.reads is a tuple of names: write \('val/loss',\)"),
        ("writes", "size", r"Acts.writes is a tuple of names: write \('size',\)"),
        ("on_error", "disabel", "Acts.on_error is 'raise' or 'disable', not 'disabel'"),
    ],
)
def test_wrong_declarations_are_refused(attribute, value, message):
    hook = Acts()
    setattr(hook, attribute, value)
    with pytest.raises(HookError, match=message):
        plan(hook)


def test_coroutines_are_refused():
    class Later(Hook):
        async def after_run(self, run):
            pass

    with pytest.raises(HookError, match="coroutine"):
        plan(Later())


@pytest.mark.parametrize("priority", [-1, 101, "medium", 1.5, True])
def test_a_bad_priority_is_refused(priority):
    hook = Acts()
    hook.priority = priority
    with pytest.raises(HookError, match="Acts.priority"):
        plan(hook)


def test_two_hooks_of_one_name_are_refused_and_naming_mends_it():
    with pytest.raises(HookError, match=r"Two hooks are named 'acts'.*named\('acts_2'\)"):
        plan(Acts(), Acts())
    assert len(plan(Acts(), Acts().named("other")).hooks) == 2


def test_what_is_no_hook_is_refused():
    with pytest.raises(HookError, match=r"write Acts\(\)"):
        plan(Acts)  # type: ignore[arg-type]
    with pytest.raises(HookError, match="is not a hook"):
        plan(print)  # type: ignore[arg-type]


class Write(Hook):
    writes = ("stats/loss",)

    def after_epoch(self, run):
        pass


class Read(Hook):
    reads = ("stats/*",)

    def after_epoch(self, run):
        pass


def test_a_reader_before_its_only_writer_is_refused_with_the_fix():
    with pytest.raises(HookError, match="list 'write' before 'read'"):
        plan(Read(), Write())
    plan(Write(), Read())


def test_a_reader_after_one_of_two_writers_is_fine():
    plan(Write().named("first"), Read(), Write())


def test_a_reader_of_what_nothing_produces_is_refused():
    with pytest.raises(MetricError, match=r"watches 'stats/\*', which nothing produces.*val/loss"):
        plan(Read(), produced=("val/loss",))


def test_log_variables_before_compute_stats_never_reaches_training():
    from hookloop.hooks import ComputeStats, LogVariables

    with pytest.raises(HookError, match="list 'compute_stats' before 'log_variables'"):
        make_trainer(hooks=[LogVariables(), ComputeStats(["loss"])]).check()
    make_trainer(hooks=[ComputeStats(["loss"]), LogVariables()]).check()


def test_a_watched_metric_that_no_evaluation_computes_is_refused():
    class Watch(Hook):
        reads = ("val/acuracy",)

        def after_val(self, run):
            pass

    with pytest.raises(MetricError, match="Did you mean 'val/accuracy'"):
        make_trainer(
            hooks=[Watch()], val_data=make_data(4), metrics={"accuracy": lambda out, y: 1.0}
        ).check()


def test_a_watched_metric_that_only_running_tells_is_refused_after_the_first_validation(tmp_path):
    class Watch(Hook):
        reads = ("val/dice",)

        def after_val(self, run):
            pass

    def step(run, batch):
        return {"loss": ((run.model(batch[0]) - batch[1]) ** 2).mean(), "iou": 0.5}

    trainer = make_trainer(
        hooks=[Watch()], step=step, max_epochs=9, val_data=make_data(4), run_dir=tmp_path
    )
    with pytest.raises(MetricError, match="'val/dice', which nothing produces"):
        trainer.train()
    assert trainer.run.progress.epoch == 1


def test_a_failing_hook_is_named_and_its_traceback_is_whole(tmp_path):
    class Fails(Hook):
        def after_train_iter(self, run):
            raise TypeError("mine")

    with pytest.raises(TypeError, match="mine") as error:
        make_trainer(hooks=[Fails()], run_dir=tmp_path).train()
    assert error.value.__notes__ == ["raised by the hook 'fails' (Fails) at after_train_iter"]
    assert error.traceback[-1].name == "after_train_iter"


def test_a_hook_that_may_fail_is_switched_off_with_one_warning(tmp_path, caplog):
    calls = []

    class Fails(Hook):
        on_error = "disable"

        def after_train_iter(self, run):
            calls.append(run.progress.iter)
            raise OSError("disk full")

        def after_run(self, run):
            calls.append("after_run")

    class Next(Hook):
        def after_train_iter(self, run):
            calls.append("next")

    with caplog.at_level(logging.WARNING, "hookloop"):
        outcome = make_trainer(hooks=[Fails(), Next()], run_dir=tmp_path).train()
    assert outcome.status == "completed"
    assert calls == [1, "next", "next", "next"]
    assert [r.getMessage() for r in caplog.records] == [
        "The hook 'fails' failed at after_train_iter and is switched off for the rest of the run: "
        "OSError: disk full"
    ]


def counted(schedule: str | int, point: str, epochs: int = 4) -> list[int]:
    calls: list[int] = []
    hook = type("Count", (Hook,), {point: lambda self, run, *a: calls.append(run.progress.iter)})()
    hook.every = schedule
    make_trainer(hooks=[hook], max_epochs=epochs, run_dir=None, default_hooks=False).train()
    return calls


def test_a_hook_is_limited_by_its_schedule(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert counted(5, "after_train_iter") == [5, 10]
    assert counted(5, "before_train_iter") == [4, 9]  # the fifth and the tenth are about to run
    assert counted("2 epochs", "after_train_epoch") == [6, 12]
    assert counted("2 epochs", "before_epoch") == [3, 9]
    assert counted("1 hour", "after_train_iter") == []


def test_one_method_is_limited_by_the_decorator(tmp_path):
    calls = []

    class Sample(Hook):
        @limit("2 iters")
        def after_train_iter(self, run):
            calls.append(run.progress.iter)

        def after_update(self, run):
            calls.append("update")

    make_trainer(hooks=[Sample()], run_dir=tmp_path).train()
    assert calls == ["update", "update", 2, "update"]


def test_a_schedule_that_limits_nothing_is_refused():
    hook = Acts()
    hook.every = "2 epochs"
    with pytest.raises(HookError, match="limits nothing"):
        plan(hook)
    hook.every = "often"
    with pytest.raises(HookError, match="Acts.every: 'often' is not an interval"):
        plan(hook)

    class Wrong(Hook):
        @limit(3)
        def after_run(self, run):
            pass

    with pytest.raises(HookError, match="'3 iters' cannot limit after_run"):
        plan(Wrong())


def test_points_of_the_projects_own_are_declared_fired_and_seen(tmp_path):
    seen = []

    class Look(Hook):
        def after_generate(self, run, samples):
            seen.append(samples)

    class Generate(Hook):
        def after_train_epoch(self, run):
            run.fire("after_generate", [1, 2])

    with pytest.raises(HookError, match="after_generate"):
        make_trainer(hooks=[Look()]).check()
    point = Point("after_generate", args=("samples",))
    make_trainer(hooks=[Look(), Generate()], points=[point], run_dir=tmp_path).train()
    assert seen == [[1, 2]]


def test_firing_an_undeclared_point_is_an_error(tmp_path):
    trainer = make_trainer(run_dir=tmp_path)
    trainer.check()
    with pytest.raises(HookError, match="'after_generate' is not a mount point"):
        trainer.run.fire("after_generate")


@pytest.mark.parametrize("name", ["generate", "After_x", "before"])
def test_a_point_needs_a_proper_name(name):
    with pytest.raises(HookError, match="cannot be a mount point"):
        Point(name)


def test_a_point_cannot_be_declared_twice():
    with pytest.raises(HookError, match="declared twice"):
        PointTable(["after_run"])


def test_functions_are_attached_to_points(tmp_path):
    trainer = make_trainer(run_dir=tmp_path)
    calls = []

    @trainer.on("after_train_iter", every=2)
    def look(run):
        calls.append(run.progress.iter)

    @trainer.on("after_train_iter", priority="highest")
    def first(run):
        calls.append("first")

    @trainer.on("after_run")
    @trainer.on("before_run")
    def both(run):
        calls.append("both")

    trainer.train()
    assert calls == ["both", "first", "first", 2, "first", "both"]
    with pytest.raises(HookError, match="Did you mean 'after_train_iter'"):
        trainer.on("after_train_itr")


def test_a_function_of_the_wrong_signature_is_refused():
    trainer = make_trainer()
    trainer.on("after_val_epoch")(lambda run: None)
    with pytest.raises(HookError, match="calls after_val_epoch"):
        trainer.check()


def test_firing_nothing_calls_nothing():
    compiled = plan()
    fire(compiled.after_run, None)  # type: ignore[arg-type]


def test_a_property_that_cannot_be_computed_yet_is_no_fault():
    class Later(Hook):
        def before_run(self, run):
            pass

        @property
        def teacher(self):
            raise RuntimeError("there is none before the training begins")

    assert plan(Later()).hooks


def test_wrapped_calls_stay_wrapped_when_a_hook_is_disabled(tmp_path):
    calls = []

    class One(Hook):
        on_error = "disable"

        def after_train_iter(self, run):
            raise ZeroDivisionError

    class Two(Hook):
        def after_train_iter(self, run):
            pass

    def wrapper(call, hook, point):
        def wrapped(*args):
            calls.append((hook.name, point))
            call(*args)

        return wrapped

    trainer = make_trainer(hooks=[One(), Two()], max_iters=2, run_dir=tmp_path)
    trainer.on("before_run")(lambda run: run.plan.wrap(wrapper))
    trainer.train()
    at = [name for name, point in calls if point == "after_train_iter"]
    assert at == ["one", "two", "two"]
