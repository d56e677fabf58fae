"""The table of mount points: its rows, and the points that a project declares."""

import pytest
from tests.tiny import make_trainer

from hookloop import Hook, Point
from hookloop.core.points import POINTS, PointTable
from hookloop.errors import HookError


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


@pytest.mark.parametrize("name", ["generate", "After_x", "before"])
def test_a_point_needs_a_proper_name(name):
    with pytest.raises(HookError, match="cannot be a mount point"):
        Point(name)


def test_a_point_cannot_be_declared_twice():
    with pytest.raises(HookError, match="declared twice"):
        PointTable(["after_run"])


def test_a_point_tells_whether_it_is_busy():
    busy = {point.name for point in POINTS if point.is_busy}
    assert {"after_train_iter", "after_forward", "after_val_iter", "before_update"} <= busy
    assert not busy & {"before_run", "after_epoch", "before_val", "after_save_checkpoint"}
    assert Point("after_sample").is_busy


def test_on_without_a_point_is_rejected():
    with pytest.raises(HookError, match="is not the name of a mount point"):
        make_trainer().on(lambda run: None)
