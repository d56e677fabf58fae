"""The table of mount points: its rows, and the points that a project declares."""

import pytest
from tests.tiny import make_trainer

from hookloop import Hook, Point
from hookloop.engine.plan import Calls, Plan
from hookloop.engine.points import POINTS, MountPoints, PointTable
from hookloop.errors import HookError


class Acts(Hook):
    def before_run(self, run):
        pass


def test_a_row_of_the_table_is_a_point_that_has_the_name_of_its_attribute():
    assert MountPoints.before_run == POINTS[0]
    for point in POINTS:
        assert isinstance(point, Point)
        assert getattr(MountPoints, point.name) is point
    assert MountPoints.after_val_epoch.signature == "after_val_epoch(run, metrics)"


def test_on_a_plan_the_same_attribute_holds_the_calls():
    hook = Acts()
    plan = Plan([hook], PointTable())
    assert isinstance(plan.before_run, Calls)
    assert (plan.before_run.hooks, plan.before_run.point) == ((hook,), MountPoints.before_run)
    assert plan.after_run == () and plan.after_run.point is MountPoints.after_run
    # The attribute of one plan is not that of another, nor of the table.
    assert Plan([], PointTable()).before_run == ()
    assert isinstance(MountPoints.before_run, Point)


def test_a_misspelled_point_is_no_attribute_of_a_plan():
    plan = Plan([Acts()], PointTable())
    with pytest.raises(AttributeError, match="before_rnu"):
        _ = plan.before_rnu
    with pytest.raises(AttributeError, match="before_rnu"):
        _ = MountPoints.before_rnu
    with pytest.raises(HookError, match="'before_run'"):
        plan.calls("before_rnu")


def test_a_table_that_is_not_compiled_has_no_calls():
    with pytest.raises(AttributeError, match="'before_run'"):
        _ = MountPoints().before_run


@pytest.mark.parametrize(
    ("clock", "ahead", "names"),
    [
        ("iters", True, "before_train_iter before_update after_update"),
        ("iters", False, "after_train_iter"),
        ("epochs", True, "before_epoch before_train_epoch"),
        ("epochs", False, "after_train_epoch after_epoch after_epoch_profile"),
    ],
)
def test_a_point_fires_before_or_after_its_counter_moves(clock, ahead, names, tmp_path):
    found = [point.name for point in POINTS if (point.clock, point.ahead) == (clock, ahead)]
    assert found == names.split()
    # What the table states is what a run does: the first firing is before or after the first count.
    seen = {}
    trainer = make_trainer(run_dir=tmp_path)
    for name in found:
        trainer.on(name)(lambda run, name=name: seen.setdefault(name, counter(run)))

    def counter(run):
        return run.progress.iter if clock == "iters" else run.progress.epoch

    trainer.train()
    assert seen == dict.fromkeys(found, 0 if ahead else 1)


def test_a_table_of_a_run_has_the_engines_points_and_then_the_projects():
    table = PointTable(["after_sample", Point("on_export", args=("path",))])
    assert [*table.values()][: len(POINTS)] == list(POINTS)
    assert [*table][len(POINTS) :] == ["after_sample", "on_export"]
    assert "after_sample" not in PointTable()
    with pytest.raises(HookError, match=r"Trainer\(points=\['on_x'\]"):
        table["on_x"]


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
    make_trainer(hooks=[Look(), Generate()], setup={"points": [point]}, run_dir=tmp_path).train()
    assert seen == [[1, 2]]


@pytest.mark.parametrize("name", ["generate", "After_x", "before"])
def test_a_point_needs_a_proper_name(name):
    with pytest.raises(HookError, match="cannot be a mount point"):
        Point(name)


def test_a_point_cannot_be_declared_twice():
    with pytest.raises(HookError, match="declared twice"):
        PointTable(["after_run"])
    with pytest.raises(HookError, match="'after_x'"):
        PointTable(["after_x", Point("after_x", "again")])


def test_a_point_tells_whether_it_is_busy():
    busy = {point.name for point in POINTS if point.is_busy}
    assert {"after_train_iter", "after_forward", "after_val_iter", "before_update"} <= busy
    assert not busy & {"before_run", "after_epoch", "before_val", "after_save_checkpoint"}
    assert Point("after_sample").is_busy


def test_on_without_a_point_is_rejected():
    with pytest.raises(HookError, match="is not the name of a mount point"):
        make_trainer().on(lambda run: None)
