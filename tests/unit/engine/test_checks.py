"""What is rejected about hooks before training starts, and with which advice."""

import pytest
from tests.tiny import make_data, make_trainer

from hookloop.engine.checks import matches
from hookloop.engine.hook import Hook
from hookloop.engine.plan import Plan
from hookloop.engine.points import PointTable
from hookloop.errors import HookError, MetricError
from hookloop.every import limit


def plan(*hooks: Hook, produced: tuple[str, ...] = ()) -> Plan:
    return Plan(hooks, PointTable(), produced)


class Acts(Hook):
    def after_train_iter(self, run):
        pass


def test_a_misspelled_mount_point_is_rejected_with_the_nearest_name():
    class Typo(Hook):
        def after_trian_iter(self, run):
            pass

    with pytest.raises(HookError, match="Typo.after_trian_iter.*'after_train_iter'"):
        plan(Typo())


@pytest.mark.parametrize("name", ["befor_run", "on_excepton", "after_val_batch", "aftertrain_iter"])
def test_other_misspellings_are_rejected(name):
    kind = type("Typo", (Hook,), {name: lambda self, run: None})
    with pytest.raises(HookError, match=name):
        plan(kind())


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("on_train_batch_end", "after_train_iter"),
        ("on_epoch_end", "after_epoch"),
        ("on_validation_epoch_end", "after_val_epoch"),
        ("on_train_begin", "before_train"),
        ("after_trian_iter", "after_train_iter"),
    ],
)
def test_a_point_by_the_name_of_others_names_our_mount_point(theirs, ours):
    hook = type("Theirs", (Hook,), {theirs: lambda self, run: None})()
    with pytest.raises(HookError, match=f"Did you mean '{ours}'"):
        make_trainer(hooks=[hook]).check()
    with pytest.raises(HookError, match=f"Did you mean '{ours}'"):
        make_trainer().on(theirs)


def test_ordinary_methods_and_attributes_are_left_alone():
    class Fine(Hook):
        on_plateau = 3

        def reset(self):
            pass

        def train(self):
            pass

        def before(self):
            pass

    plan(Fine())


def test_a_property_that_cannot_be_computed_yet_is_not_a_problem():
    class Later(Hook):
        def before_run(self, run):
            pass

        @property
        def teacher(self):
            raise RuntimeError("there is none before the training begins")

    assert plan(Later()).hooks


def test_a_wrong_signature_is_rejected():
    class TooFew(Hook):
        def after_val_epoch(self, run):
            pass

    class TooMany(Hook):
        def after_train_iter(self, run, batch_idx):
            pass

    with pytest.raises(HookError, match=r"after_val_epoch\(run, metrics\)"):
        plan(TooFew())
    with pytest.raises(HookError, match=r"TooMany.after_train_iter.*\(run, batch_idx\)"):
        plan(TooMany())


def test_a_signature_with_defaults_or_stars_is_accepted():
    class Loose(Hook):
        def after_train_iter(self, run, extra=None):
            pass

        def after_val_epoch(self, *args):
            pass

    plan(Loose())


def test_a_function_of_the_wrong_signature_is_rejected():
    trainer = make_trainer()
    trainer.on("after_val_epoch")(lambda run: None)
    with pytest.raises(HookError, match="calls after_val_epoch"):
        trainer.check()


def test_generators_are_rejected():
    class Yields(Hook):
        def after_epoch(self, run):
            yield run

    with pytest.raises(HookError, match="Yields.after_epoch is a generator"):
        plan(Yields())


def test_coroutines_are_rejected():
    class Later(Hook):
        async def after_run(self, run):
            pass

    with pytest.raises(HookError, match="coroutine"):
        plan(Later())


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("reads", "val/loss", r"Acts.reads is a tuple of names: write \('val/loss',\)"),
        ("writes", "size", r"Acts.writes is a tuple of names: write \('size',\)"),
        ("on_error", "disabel", "Acts.on_error is 'raise' or 'disable', not 'disabel'"),
    ],
)
def test_wrong_declarations_are_rejected(attribute, value, message):
    hook = Acts()
    setattr(hook, attribute, value)
    with pytest.raises(HookError, match=message):
        plan(hook)


@pytest.mark.parametrize("priority", [-1, 101, "medium", 1.5, True])
def test_a_bad_priority_is_rejected(priority):
    hook = Acts()
    hook.priority = priority
    with pytest.raises(HookError, match="Acts.priority"):
        plan(hook)


def test_an_interval_that_limits_nothing_is_rejected():
    hook = Acts()
    hook.every = "2 epochs"
    with pytest.raises(HookError, match="limits nothing"):
        plan(hook)
    hook.every = "often"
    with pytest.raises(HookError, match="Acts.every.*'often'"):
        plan(hook)

    class Wrong(Hook):
        @limit(3)
        def after_run(self, run):
            pass

    with pytest.raises(HookError, match="'3 iters'.*after_run"):
        plan(Wrong())


def test_what_is_not_a_hook_is_rejected():
    with pytest.raises(HookError, match=r"write Acts\(\)"):
        plan(Acts)  # type: ignore[arg-type]
    with pytest.raises(HookError, match="is not a hook"):
        plan(print)  # type: ignore[arg-type]


def test_two_hooks_of_one_name_are_rejected_and_naming_fixes_it():
    with pytest.raises(HookError, match=r"'acts'.*named\('acts_2'\)"):
        plan(Acts(), Acts())
    assert len(plan(Acts(), Acts().named("other")).hooks) == 2


class Write(Hook):
    writes = ("stats/loss",)

    def after_epoch(self, run):
        pass


class Read(Hook):
    reads = ("stats/*",)

    def after_epoch(self, run):
        pass


def test_a_reader_before_its_only_writer_is_rejected_with_the_fix():
    with pytest.raises(HookError, match="'write'.*'read'"):
        plan(Read(), Write())
    plan(Write(), Read())


def test_a_reader_after_one_of_two_writers_is_fine():
    plan(Write().named("first"), Read(), Write())


def test_a_reader_of_what_nothing_produces_is_rejected():
    with pytest.raises(MetricError, match=r"'stats/\*'.*val/loss"):
        plan(Read(), produced=("val/loss",))


def test_log_variables_before_compute_stats_never_reaches_training():
    from hookloop.hooks import ComputeStats, LogVariables

    with pytest.raises(HookError, match="'compute_stats'.*'log_variables'"):
        make_trainer(hooks=[LogVariables(), ComputeStats(["loss"])]).check()
    make_trainer(hooks=[ComputeStats(["loss"]), LogVariables()]).check()


def test_a_watched_metric_that_no_evaluation_computes_is_rejected():
    class Watch(Hook):
        reads = ("val/acuracy",)

        def after_val(self, run):
            pass

    with pytest.raises(MetricError, match="'val/accuracy'"):
        make_trainer(
            hooks=[Watch()], val_data=make_data(4), metrics={"accuracy": lambda out, y: 1.0}
        ).check()


def test_a_watched_metric_that_only_a_run_can_show_is_rejected_after_the_first_validation(tmp_path):
    class Watch(Hook):
        reads = ("val/dice",)

        def after_val(self, run):
            pass

    def step(run, batch):
        return {"loss": ((run.model(batch[0]) - batch[1]) ** 2).mean(), "iou": 0.5}

    trainer = make_trainer(
        hooks=[Watch()], step=step, max_epochs=9, val_data=make_data(4), run_dir=tmp_path
    )
    with pytest.raises(MetricError, match="'val/dice'"):
        trainer.train()
    assert trainer.run.progress.epoch == 1


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("val/loss", "val/loss", True),
        ("val/*", "val/clean/loss", True),
        ("val/loss", "*/loss", True),
        ("val/*", "*", True),
        ("val/loss", "val/losses", False),
        ("val/*", "train/*", False),
        ("VAL/loss", "val/loss", False),
    ],
)
def test_either_name_may_be_a_pattern(first, second, expected):
    assert matches(first, second) is matches(second, first) is expected


def test_a_priority_puts_a_reader_after_its_writer():
    reader = Read()
    with pytest.raises(HookError, match="a priority number above 50"):
        plan(reader, Write())
    reader.priority = 51
    assert [hook.name for hook in plan(reader, Write()).hooks] == ["write", "read"]


def test_a_reader_that_acts_at_other_points_than_the_writer_may_come_first():
    class ReadLater(Hook):
        reads = ("stats/loss",)

        def after_run(self, run):
            pass

    plan(ReadLater(), Write())


def test_a_hook_does_not_write_what_it_reads_for_itself():
    class Both(Write):
        reads = ("stats/loss",)

    with pytest.raises(MetricError, match="'stats/loss'"):
        plan(Both())
    plan(Write(), Both())


def test_without_validation_data_a_reader_of_its_metrics_is_rejected_with_the_reason():
    class Watch(Read):
        reads = ("val/loss",)

    with pytest.raises(MetricError, match="val_data="):
        make_trainer(hooks=[Watch()]).check()


def test_a_hook_that_is_rejected_is_named_in_the_error():
    with pytest.raises(HookError) as caught:
        plan(Read(), Write())
    assert caught.value.hook == "read"
