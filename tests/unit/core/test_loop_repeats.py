"""Points that fire again when a training continues leave no second trace in it."""

import torch

from hookloop import Hook
from hookloop.testing import assert_resumes_exactly, tiny_trainer


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
