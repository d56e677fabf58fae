"""One suite over every built-in hook: what each of them must do in any run.

A new hook is found by itself. Only one that needs arguments has to be added, to EXAMPLES.
"""

import inspect
import re
from pathlib import Path

import pytest
import torch
from tests.tiny import Record
from torch.utils.data import DataLoader, TensorDataset

import hookloop.hooks
from hookloop import Trainer
from hookloop.data.random.generators import Generator, process_generators
from hookloop.engine.hook import acts_at
from hookloop.engine.plan import Plan
from hookloop.engine.points import PointTable
from hookloop.testing import assert_hook_contract
from hookloop.trainer.settings import gathered
from hookloop.writers.jsonl import JsonLines

DOCS = Path(__file__).parents[2] / "docs"


class Acting(hookloop.hooks.ActOnPlateau):
    """The smallest subclass of an abstract hook."""

    def act(self, run):
        pass


# How to make each hook that needs arguments; the others are made without any.
EXAMPLES = {
    "AccumulateVariables": lambda: hookloop.hooks.AccumulateVariables(["targets"]),
    "ActOnPlateau": Acting,
    "AugmentAtTest": lambda: hookloop.hooks.AugmentAtTest([torch.neg], phases=["val", "test"]),
    "ClassificationMetrics": lambda: hookloop.hooks.ClassificationMetrics(metrics=["f1"]),
    "ClipGradients": lambda: hookloop.hooks.ClipGradients(max_norm=0.01),
    "ComputeStats": lambda: hookloop.hooks.ComputeStats(["loss"]),
    "CutMix": lambda: hookloop.hooks.CutMix(3, dims=1),
    "FreezeParameters": lambda: hookloop.hooks.FreezeParameters("0.*", until=2),
    "MaskOutputs": lambda: hookloop.hooks.MaskOutputs([0, 1]),
    "MixUp": lambda: hookloop.hooks.MixUp(3),
    # Nobody listens on port 9, and no run of this suite is interrupted.
    "Notify": lambda: hookloop.hooks.Notify("http://127.0.0.1:9/hook", on=["interrupted"]),
    "PlantFault": lambda: hookloop.hooks.PlantFault("lr@2"),
    "PlotLines": lambda: hookloop.hooks.PlotLines(examples=1),
    "RecordNorms": lambda: hookloop.hooks.RecordNorms(["grad", "update", "activation"], every=2),
    "RecordThroughput": lambda: hookloop.hooks.RecordThroughput(every=2, flops="auto", peak=1e12),
    "ReportTrial": lambda: hookloop.hooks.ReportTrial(None, "val/loss"),
    "RequireMetric": lambda: hookloop.hooks.RequireMetric("val/accuracy", above=-1.0),
    # The samples of this suite are neither images nor sequences that may be cut: no change.
    "ResizeInputs": lambda: hookloop.hooks.ResizeInputs(0),
    "SaveFiles": lambda: hookloop.hooks.SaveFiles([__file__]),
    "ScheduleAttribute": lambda: hookloop.hooks.ScheduleAttribute("model.0.in_features", {0: 4}),
    "ScheduleParameter": lambda: hookloop.hooks.ScheduleParameter("momentum", start=0.5, end=0.9),
    "StopAfter": lambda: hookloop.hooks.StopAfter(epochs=100),
    "Unfreeze": lambda: hookloop.hooks.Unfreeze({2: "*.weight"}, 0.01, first="*.bias"),
    "WarmUpLength": lambda: hookloop.hooks.WarmUpLength(4, start=4),
    "WriteClearML": lambda: hookloop.hooks.WriteClearML(mode="offline"),
    "WriteComet": lambda: hookloop.hooks.WriteComet(mode="offline"),
    "WriteTo": lambda: hookloop.hooks.WriteTo(lambda run: JsonLines(run.dir / "own.jsonl")),
    "WriteWandb": lambda: hookloop.hooks.WriteWandb(mode="offline"),
}
# Hooks that take part in the training and still must not change the weights it ends with: they
# look, stop, average or evaluate. A hook that does not take part must never change them.
LEAVES_WEIGHTS = {
    "ActOnPlateau",
    "AugmentAtTest",
    "AverageWeights",
    "MaskOutputs",
    "MomentumTeacher",
    "RecomputeBatchNorm",
    "RequireFiniteLoss",
    "ReportTrial",
    "RequireMetric",
    "SetSamplerEpoch",
    "SkipBadUpdates",
    "StopAfter",
    "StopOnNaN",
    "StopOnPlateau",
    "SyncBuffers",
}
# Parts of a state that count time or name the run, and so differ from one run to the next.
CLOCKS = {
    "ShowProgress": {"seconds"},
    "StopAfter": {"seconds"},
    "WriteTrackio": {"run_name", "unsure"},
    # What a service has taken by the time of the checkpoint; a resume sends the rest.
    "WriteClearML": {"unsure"},
    "WriteComet": {"unsure"},
    "WriteMLflow": {"unsure"},
    "WriteWandb": {"unsure"},
}
SLOW = {
    "WriteComet",
    "WriteWandb",
    "WriteMLflow",
    "WriteTrackio",
}  # They start services or databases.
HEAVY = {
    "PlotLines",
    "ProfileOperators",
    "SaveConfusionMatrix",
    "VisualizePredictions",
    "WriteClearML",
    "WriteTensorBoard",
}  # Their packages take seconds to import, or they draw pictures.
every_hook = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in SLOW | HEAVY else ())
        for name in hookloop.hooks.__all__
    ],
)


def needs_arguments(name):
    parameters = inspect.signature(getattr(hookloop.hooks, name)).parameters.values()
    return any(parameter.default is parameter.empty for parameter in parameters)


def make_hook(name):
    if name not in EXAMPLES and needs_arguments(name):
        pytest.fail(f"{name} needs arguments: add how to make it to EXAMPLES.")
    return EXAMPLES.get(name, getattr(hookloop.hooks, name))()


def make_data(samples=12):
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(samples, 4, generator=generator)
    return DataLoader(TensorDataset(inputs, inputs[:, :3].argmax(1)), batch_size=4)


def accuracy(output, targets):
    return (output.argmax(1) == targets).float().mean()


def make_trainer(directory, *hooks, **options):
    """Three classes, three iterations per epoch, two epochs, a validation after each."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    parts = {
        "train_data": make_data(),
        "val_data": make_data(),
        "data.test": make_data(),
        "loss": torch.nn.functional.cross_entropy,
        "metrics": {"accuracy": accuracy},
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9),
        "max_epochs": 2,
        "default_hooks": False,
        "run_dir": directory,
        "seed": 3,
    }
    return Trainer(model, hooks=hooks, **gathered(parts | options))


@every_hook
def test_it_keeps_the_contract_of_a_hook(name, tmp_path):
    assert_hook_contract(
        lambda: make_hook(name),
        changes_training=False if name in LEAVES_WEIGHTS else None,  # None: what the hook declares.
        clocks=CLOCKS.get(name, ()),
    )


DRAWING_NOTHING = [
    name
    for name in hookloop.hooks.__all__
    if not getattr(hookloop.hooks, name).draws_random_numbers
]


@pytest.mark.parametrize("name", DRAWING_NOTHING)
def test_a_hook_that_declares_to_draw_nothing_draws_nothing(name, tmp_path):
    hook = make_hook(name)
    trainer = make_trainer(tmp_path / "run", hook)
    moved = []

    def watch(call, owner, point):
        def watched(run, *args):
            generators = process_generators()
            before = [one.get_state() for one in generators]
            call(run, *args)
            if any(map(Generator.has_moved, generators, before)):
                moved.append(point)

        return watched

    wrap = trainer.on("before_run", priority=0, takes_part_in_training=True)
    wrap(lambda run: run._plan.wrap(watch))
    trainer.train()
    trainer.test()
    assert not moved


@every_hook
def test_it_acts_only_at_mount_points_and_at_least_at_one(name):
    hook = make_hook(name)
    points = PointTable()
    assert acts_at(hook, points)
    Plan([hook], points, ["*"])  # Rejects misspelled points, wrong signatures and intervals.


@every_hook
def test_its_docstring_has_a_duty_its_parameters_and_an_example(name):
    kind = getattr(hookloop.hooks, name)
    doc = inspect.getdoc(kind)
    assert doc.split("\n")[0].endswith(".")
    assert "Example:" in doc and ">>>" in doc
    for parameter in inspect.signature(kind).parameters:
        assert re.search(rf"^ +\**{parameter}: \S", doc, re.MULTILINE), parameter


@every_hook
def test_it_has_an_entry_in_the_documentation(name):
    assert f"\n### {name}\n" in (DOCS / "hooks.md").read_text(encoding="utf-8")


def test_every_module_of_a_hook_is_in_the_list_of_all_hooks():
    modules = {path.stem for path in Path(hookloop.hooks.__file__).parent.glob("*/[!_]*.py")}
    assert modules == {getattr(hookloop.hooks, name).name for name in hookloop.hooks.__all__}


@every_hook
def test_reads_and_writes_are_names_of_metrics(name):
    hook = make_hook(name)
    # A metric has the prefix of its stream or topic. Other effects of a hook have attributes of
    # their own: ends_training, owns, takes_part_in_training.
    assert all("/" in metric for metric in (*hook.reads, *hook.writes) if metric != "*")


def test_examples_and_exceptions_name_hooks_that_exist():
    for names in (EXAMPLES, LEAVES_WEIGHTS, CLOCKS):
        assert set(names) <= set(hookloop.hooks.__all__)
    assert all(make_hook(name).takes_part_in_training for name in LEAVES_WEIGHTS)


def test_the_recorder_of_the_tests_is_called_at_points_only(tmp_path):
    seen = Record()
    make_trainer(tmp_path, seen).train()
    assert set(seen.points) <= set(PointTable())


@every_hook
def test_a_prediction_works_with_it_and_needs_no_targets(name, tmp_path):
    trainer = make_trainer(tmp_path, make_hook(name), max_epochs=1)
    batches = [inputs for inputs, _ in make_data()]
    assert trainer.predict(batches).shape == (12, 3)  # Before any training.
    if name not in SLOW:  # They start a service for each.
        trainer.train()
        assert trainer.predict(batches).shape == (12, 3)
