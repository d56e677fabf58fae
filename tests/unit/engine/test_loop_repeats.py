"""Points that fire again when a training continues leave no second trace in it."""

import random

import numpy as np
import pytest
import torch
from tests.readback import jsonl_points
from tests.tiny import assert_same_bits

from hookloop import Hook
from hookloop.checkpoint.state.compare import compare
from hookloop.testing import assert_resumes_exactly, tiny_trainer
from hookloop.trainer.state.run_state import RunState


class Probe(Hook):
    """Chooses at random what to watch, when the run and when an epoch begins, and records it."""

    def before_train(self, run):
        self.weight = torch.rand(1).item()
        run.metrics.put("probe/size", self.weight)

    def before_epoch(self, run):
        self.scale = torch.rand(1).item()
        run.metrics.put("probe/scale", self.scale)

    def before_train_epoch(self, run):
        run.metrics.put("probe/count", 1)

    def after_train_iter(self, run):
        run.metrics.put("probe/watched", self.weight + 2 * self.scale)


@pytest.mark.slow
def test_what_is_drawn_and_recorded_as_an_epoch_begins_is_so_once():
    def make(**options):
        return tiny_trainer(Probe(), max_epochs=3, **options)

    assert_resumes_exactly(make, stop_at=(1, 3, 4, 8))


def test_so_it_is_when_the_same_trainer_continues(tmp_path):
    whole = tiny_trainer(Probe(), max_epochs=4, run_dir=tmp_path / "whole")
    parts = tiny_trainer(Probe(), max_epochs=2, run_dir=tmp_path / "parts")
    whole.train(), parts.train(), parts.train(max_epochs=4)
    assert parts.run.metrics.state_dict() == whole.run.metrics.state_dict()


class Added(Hook):
    def before_train(self, run):
        run.metrics.put("added", 7)


def test_a_hook_that_is_new_at_a_resume_is_recorded(tmp_path):
    tiny_trainer(max_epochs=1, run_dir=tmp_path, default_hooks={"console": None}).train()
    again = tiny_trainer(
        Added(), max_epochs=2, run_dir=tmp_path, resume=True, default_hooks={"console": None}
    )
    again.train()
    assert '"added": 7.0' in (tmp_path / "metrics.jsonl").read_text()


class Draw(Hook):
    """Takes part in the training: draws from every generator of it as the run and epochs begin."""

    takes_part_in_training = True

    def __init__(self):
        self.seen = []

    def draw(self, run, point):
        value = torch.rand(1).item() + random.random() + np.random.rand()
        run.metrics.put(f"draw/{point}", value)
        self.seen.append((point, run.progress.iter))

    def state_dict(self):
        return {}  # What was seen is the test's, and no state of the run.

    def load_state_dict(self, state):
        pass

    def before_train(self, run):
        self.draw(run, "train")

    def before_epoch(self, run):
        self.draw(run, "epoch")

    def before_train_epoch(self, run):
        self.draw(run, "train_epoch")


class Cut(Exception):
    pass


def on_epoch(number):
    return lambda run: run.progress.epoch == number


def on_iter(number):
    return lambda run: run.progress.iter == number


CUTS = {
    "before the first epoch": ("before_train", on_iter(0), "before_train_iter"),
    "before the first iteration": ("before_train_epoch", on_iter(0), "before_train_iter"),
    "inside the first epoch": ("after_train_iter", on_iter(2), "before_train_iter"),
    "on the last iteration of an epoch": ("after_train_iter", on_iter(3), "after_train_epoch"),
    "while an epoch is closed": ("after_train_epoch", on_epoch(1), "after_epoch"),
    "between two epochs": ("after_epoch", on_epoch(1), "before_epoch"),
    "as the second epoch begins": ("before_epoch", on_epoch(1), "before_train_iter"),
    "inside the second epoch": ("after_train_iter", on_iter(4), "after_update"),
}


def train_and_cut(trainer, save_at, when, fail_at):
    """Save at one point, and fail at the next firing of another, as a kill would."""
    asked = []

    @trainer.on(save_at, priority="LOWEST", takes_part_in_training=True)
    def save(run):
        if when(run):
            run.save()
            asked.append(run.progress.iter)

    @trainer.on(fail_at, priority="LOWEST", takes_part_in_training=True)
    def fail(run):
        if asked:
            raise Cut

    with pytest.raises(Cut):
        trainer.train()


def same_end(one, other):
    return compare(RunState(one.run).gather(), RunState(other.run).gather()) == []


def count_of(trainer, name):
    return trainer.run.metrics.counts([name])[name]


WAYS = [
    *((cut, {}) for cut in CUTS),
    ("inside the second epoch", {"val_every.at_start": True, "val_every": "2 iters"}),
    ("before the first epoch", {"val_every.at_start": True}),
    ("as the second epoch begins", {"accumulate": 2, "data.epoch_iters": 3}),
    ("inside the second epoch", {"precision": "bf16", "device": "cpu"}),
]


@pytest.mark.parametrize(("name", "options"), WAYS, ids=str)
def test_a_resume_fires_them_again_and_the_training_keeps_its_bits_and_numbers(
    name, options, tmp_path
):
    whole = tiny_trainer(Draw(), max_epochs=3, run_dir=tmp_path / "whole", **options)
    whole.train()
    train_and_cut(
        tiny_trainer(Draw(), max_epochs=3, run_dir=tmp_path / "cut", **options), *CUTS[name]
    )
    hook = Draw()
    resumed = tiny_trainer(hook, max_epochs=3, run_dir=tmp_path / "cut", resume=True, **options)
    resumed.train()
    assert hook.seen[0][0] == "train"  # It does fire again.
    assert same_end(whole, resumed)
    assert count_of(resumed, "draw/train") == 1
    assert count_of(resumed, "draw/epoch") == count_of(resumed, "draw/train_epoch") == 3


@pytest.mark.slow
def test_the_points_of_an_epoch_fire_again_only_if_it_had_begun(tmp_path):
    seen = {}
    for name, cut in CUTS.items():
        train_and_cut(tiny_trainer(Draw(), max_epochs=2, run_dir=tmp_path / name), *cut)
        hook = Draw()
        trainer = tiny_trainer(hook, max_epochs=2, run_dir=tmp_path / name, resume=True)
        trainer.train()
        seen[name] = [iteration for point, iteration in hook.seen if point == "epoch"]
    assert seen == {
        "before the first epoch": [0, 3],
        "before the first iteration": [0, 3],
        "inside the first epoch": [2, 3],
        "on the last iteration of an epoch": [3, 3],
        "while an epoch is closed": [3],
        "between two epochs": [3],
        "as the second epoch begins": [3],
        "inside the second epoch": [4],
    }


@pytest.mark.parametrize("hook", [Draw, Probe])
@pytest.mark.parametrize(
    "limits",
    [
        [{"max_epochs": 1}, {"max_epochs": 2}, {"max_epochs": 4}],
        [{"max_iters": 4}, {"max_iters": 12}],  # The first ends inside an epoch.
        [{"max_iters": 3}, {"max_iters": 7}, {"max_iters": 12}],
    ],
    ids=str,
)
def test_a_training_in_several_calls_is_one_training(hook, limits, tmp_path):
    def make(name, limit):
        options = {"max_epochs": None, "val_every": "3 iters", "run_dir": tmp_path / name} | limit
        return tiny_trainer(hook(), **options)

    whole, parts = make("whole", limits[-1]), make("parts", limits[0])
    whole.train(), parts.train()
    for limit in limits[1:]:
        torch.rand(5), random.random(), np.random.rand()  # What a notebook does in between.
        parts.train(**limit)
    assert_same_bits(parts.run.model, whole.run.model)
    assert parts.run.progress.iter == whole.run.progress.iter == 12
    for name in ("draw/epoch", "draw/train") if hook is Draw else ("probe/scale", "probe/size"):
        assert count_of(parts, name) == count_of(whole, name)


@pytest.mark.parametrize("cut", [CUTS["inside the second epoch"], CUTS["between two epochs"]])
def test_a_run_that_was_continued_and_then_cut_resumes_exactly(cut, tmp_path):
    save_at, _, fail_at = cut
    whole = tiny_trainer(Draw(), max_epochs=5, run_dir=tmp_path / "whole")
    whole.train()
    parts = tiny_trainer(Draw(), max_epochs=2, run_dir=tmp_path / "parts")
    parts.train()
    parts.run.progress.max_epochs = 5
    later = on_iter(10) if save_at == "after_train_iter" else on_epoch(3)
    train_and_cut(parts, save_at, later, fail_at)
    resumed = tiny_trainer(Draw(), max_epochs=5, run_dir=tmp_path / "parts", resume=True)
    resumed.train()
    assert same_end(whole, resumed)


@pytest.mark.parametrize(
    "cut", ["before the first epoch", "between two epochs", "inside the second epoch"]
)
def test_what_is_written_has_each_number_once(cut, tmp_path):
    def make(name, **options):
        hooks = {"console": None, "timing": None, "checkpoint": None}
        return tiny_trainer(
            Draw(), default_hooks=hooks, max_epochs=3, run_dir=tmp_path / name, **options
        )

    make("whole").train()
    train_and_cut(make("cut"), *CUTS[cut])
    make("cut", resume=True).train()
    for name in ("draw/train", "draw/epoch", "draw/train_epoch", "train_epoch/loss", "val/loss"):
        found = [jsonl_points(tmp_path / part / "metrics.jsonl", name) for part in ("whole", "cut")]
        assert found[0] == found[1] and found[0], name


def test_a_failure_at_a_repeated_point_does_not_hide_later_numbers(tmp_path):
    class Fragile(Draw):
        on_error = "disable"

        def before_epoch(self, run):
            super().before_epoch(run)
            if len(self.seen) == 2 and run.progress.iter == 4:
                raise OSError("no sensor")

        def after_train_iter(self, run):
            run.metrics.put("draw/late", 1)

    run_dir = tmp_path / "run"
    train_and_cut(
        tiny_trainer(Fragile(), max_epochs=3, run_dir=run_dir), *CUTS["inside the second epoch"]
    )
    trainer = tiny_trainer(Fragile(), max_epochs=3, run_dir=run_dir, resume=True)

    @trainer.on("before_epoch", priority="LOW")
    def count(run):
        run.metrics.put("epochs", run.progress.epoch)

    outcome = trainer.train()
    assert [one.hook for one in outcome.disabled] == ["fragile"]
    assert count_of(trainer, "epochs") == 2  # New at the resume, so recorded there, and once more.
    assert trainer.run.progress.iter == 9
