"""The timetable: who acts where, in the order of the calls."""

from tests.tiny import make_trainer

from hookloop import Every, Hook, Point, limit
from hookloop.engine.points import POINTS
from hookloop.trainer.planning import Row


class Watch(Hook):
    priority = "LOW"
    reads = ("train/loss",)
    writes = ("watch/loss", "watch/size")
    every = "10 iters"

    def before_run(self, run):
        pass

    def after_train_iter(self, run):
        pass

    @limit("2 epochs")
    def after_epoch(self, run):
        pass


def test_each_row_has_what_the_hook_declares_and_its_interval_at_that_point():
    rows = make_trainer(hooks=[Watch()]).timetable()
    both = (("train/loss",), ("watch/loss", "watch/size"))
    assert rows == [
        Row("before_run", "watch", 70, None, *both),
        Row("after_train_iter", "watch", 70, Every.parse("10 iters"), *both),
        Row("after_epoch", "watch", 70, Every.parse("2 epochs"), *both),
    ]


def test_rows_are_in_the_order_of_the_points_and_then_of_the_calls():
    trainer = make_trainer(hooks=[Watch()], setup={"points": [Point("after_sample")]})
    for point, priority in [
        ("after_sample", 50), ("after_epoch", 90), ("before_run", "HIGHEST"), ("after_epoch", 10),
    ]:  # fmt: skip
        trainer.on(point, priority=priority)(lambda run: None)
    rows = [(row.point, row.priority) for row in trainer.timetable()]
    assert rows == [
        ("before_run", 0), ("before_run", 70), ("after_train_iter", 70),
        ("after_epoch", 10), ("after_epoch", 70), ("after_epoch", 90), ("after_sample", 50),
    ]  # fmt: skip


def test_with_the_default_hooks_it_is_the_order_of_the_table():
    order = [point.name for point in POINTS]
    points = [order.index(row.point) for row in make_trainer(default_hooks=None).timetable()]
    assert points == sorted(points) and len(set(points)) > 5


def test_a_run_without_hooks_has_an_empty_one():
    assert make_trainer().timetable() == []
