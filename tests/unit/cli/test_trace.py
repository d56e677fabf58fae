"""`trace` shows what fires, and `explain` where a number comes from."""

import json
import logging

import pytest
from click.testing import CliRunner
from tests.tiny import make_classes, make_classifier, make_trainer

from hookloop import Hook, HookloopError, hooks, limit
from hookloop.cli.main import cli
from hookloop.config.tracing import trace
from hookloop.hooks.measuring.record_hook_times import parse_budgets
from hookloop.runs import RunDir
from hookloop.runs.explaining import explain
from hookloop.update.tracing import over_budget


class Nudges(Hook):
    """Changes a weight every second iteration, and says so to nobody."""

    name = "nudges"
    takes_part_in_training = True

    @limit(2)
    def after_train_iter(self, run):
        next(run.model.parameters()).data.add_(1e-6)
        run.metrics.put("quality", 1.0)


class Slow(Hook):
    name = "slow"

    def after_train_iter(self, run):
        total = 0
        for number in range(300_000):
            total += number


class AtTests(Hook):
    name = "at_tests"

    def after_test_epoch(self, run, metrics):
        pass


class Rare(Hook):
    name = "rare"
    every = 1000

    def after_train_iter(self, run):
        pass


def parts(directory):
    trainer = make_classifier(max_epochs=1)  # The parts of a script.
    run = trainer.run
    return {
        "model": run.model,
        "train_data": make_classes(48),
        "val_data": make_classes(8),
        "val_every": "5 iters",
        "loss": run._internals.loss_function,
        "optimizer": run.optimizer,
        "max_iters": 12,
        "hooks": [Nudges(), Slow(), AtTests(), Rare()],
        "run_dir": directory,
    }


@pytest.fixture(scope="module")
def traced():
    return trace("script.py", iters=8, writes=True, make=parts)


def test_every_firing_has_its_point_iteration_time_and_writes(traced):
    assert (traced.first, traced.last) == (1, 8)
    nudges = [one for one in traced.firings if one.name == "nudges"]
    assert [one.iter for one in nudges] == [2, 4, 6, 8]
    assert all(one.point == "after_train_iter" and one.seconds > 0 for one in nudges)
    assert all(one.metrics == ("quality",) for one in nudges)
    assert all(("weight", "0.weight") in one.wrote for one in nudges)
    engine = {one.name for one in traced.events if one.kind == "engine"}
    assert engine >= {"data", "forward", "loss", "backward", "step"}
    assert all(one.seconds >= 0 for one in traced.events)
    text = "\n".join(traced.tree())
    assert "quality" in text and "iterations" not in text.splitlines()[0]
    silent = {one.hook: one.reason for one in traced.silent}
    assert silent["at_tests"] == "it acts at after_test_epoch, which did not fire"
    assert silent["rare"] == "it acts every 1000 iters"
    assert not {"nudges", "slow"} & silent.keys()


def test_a_file_for_perfetto_holds_nested_spans(traced):
    events = [one for one in traced.chrome()["traceEvents"] if one["ph"] == "X"]
    assert len(events) == len(traced.events)
    points = [one for one in events if one["cat"] == "point"]
    for hook in (one for one in events if one["cat"] == "hook"):
        point = hook["args"]["point"]
        around = [one for one in points if one["name"] == point and one["ts"] <= hook["ts"]]
        end = hook["ts"] + hook["dur"]
        assert end <= around[-1]["ts"] + around[-1]["dur"] + 0.01


def test_a_hook_that_costs_more_than_it_may_is_named(traced):
    dear = {name for name, _, _ in over_budget(traced, parse_budgets({"slow": "0.001 %"}))}
    assert dear == {"slow"}
    assert not list(over_budget(traced, {"at_tests": 0.01}))
    with pytest.raises(HookloopError, match="share"):
        parse_budgets({"slow": "101 %"})


def test_record_hook_times_reports_it_once_and_leaves_the_training_alone(caplog, tmp_path):
    def train(own):
        trainer = make_trainer(hooks=own, max_epochs=2, run_dir=tmp_path / str(len(own)))
        trainer.train()
        return trainer.run.model.state_dict()

    with caplog.at_level(logging.WARNING, "hookloop"):
        seen = train([hooks.RecordHookTimes(cost={"slow": "0.001 %"}), Slow()])
    said = [one.message for one in caplog.records if "may cost" in one.message]
    assert len(said) == 1 and "'slow'" in said[0]
    bare = train([Slow()])
    assert all(bool((seen[name] == bare[name]).all()) for name in seen)


def test_the_run_of_a_trace_is_that_without_it():
    one = trace("script.py", iters=4, make=parts)
    assert [e.name for e in one.firings] == [
        e.name for e in trace("script.py", iters=4, make=parts).firings
    ]


def test_explain_names_writer_readers_and_when(tmp_path):
    trainer = make_classifier(
        max_epochs=4,
        run_dir=tmp_path / "run",
        default_hooks={"console": None, "metrics": hooks.WriteMetrics(every=1)},
        hooks=[hooks.RecordNorms(every=2), hooks.StopOnPlateau("val/accuracy")],
    )
    trainer.train()
    run = RunDir(tmp_path / "run")
    accuracy = explain(run, "val/accuracy")
    assert "evaluation" in accuracy.origin and not accuracy.writers
    assert [one.hook for one in accuracy.readers] == ["stop_on_plateau"]
    assert (accuracy.recorded, accuracy.first, accuracy.last, accuracy.apart) == (4, 3, 12, 3)
    norms = explain(run, "norms/grad")
    assert [one.type for one in norms.writers] == ["RecordNorms"]
    assert norms.writers[0].points["after_train_iter"] == "2 iters"
    assert "WriteMetrics" in norms.outputs
    assert explain(run, "train_epoch/loss").basis == "train/loss"
    assert explain(run, "train/iter_time").is_of_machine
    with pytest.raises(HookloopError, match="Did you mean 'val/accuracy'"):
        explain(run, "val/acuracy")
    done = CliRunner().invoke(cli, ["explain", str(run.path), "val/accuracy", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["readers"][0]["hook"] == "stop_on_plateau"
