"""Validation and test: what is computed, at which points, after which iterations."""

import pytest
import torch
from tests.tiny import (
    Negate,
    Record,
    make_classifier,
    make_data,
    make_model,
    make_trainer,
    negated,
    record,
)
from torch.nn import functional

from hookloop.engine.hook import Hook
from hookloop.errors import DataError

VAL_ITER = "before_val_iter before_forward after_forward after_loss after_val_iter".split()
VAL = ["before_val", "before_val_epoch", *VAL_ITER, "after_val_epoch", "after_val"]


def samples(count=20):
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(count, 4, generator=generator)
    return inputs, inputs.sum(1, keepdim=True) + torch.randn(count, 1, generator=generator)


def notes_of(work):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - torch's own, of any kind
        work()
    return " ".join(caught.value.__notes__)


def test_points_of_a_validation_alone(tmp_path):
    hook = Record()
    trainer = make_trainer(hooks=[hook], val_data=make_data(4), run_dir=tmp_path)
    assert "loss" in trainer.validate()
    assert hook.points == ["before_run", *VAL, "after_run"]


def test_points_of_a_test(tmp_path):
    hook = Record()
    make_trainer(hooks=[hook], data={"test": make_data(8)}, run_dir=tmp_path).test()
    iteration = "before_test_iter before_forward after_forward after_loss after_test_iter".split()
    assert hook.points == [
        "before_run",
        "before_test",
        "before_test_epoch",
        *iteration * 2,
        "after_test_epoch",
        "after_test",
        "after_run",
    ]


def test_hooks_see_phase_and_stream(tmp_path):
    hook, calls = record(["after_loss"], lambda run: (run.phase, run.stream))
    streams = {"clean": make_data(4), "noisy": make_data(4)}
    make_trainer(hooks=[hook], val_data=streams, run_dir=tmp_path).train()
    assert [note for _, note in calls] == [("train", "train")] * 3 + [
        ("val", "clean"),
        ("val", "noisy"),
    ]


def test_validation_means_weigh_samples_not_batches():
    trainer = make_trainer(
        val_data=make_data(6, batch_size=4), metrics={"count": lambda out, _: float(len(out))}
    )
    assert trainer.validate()["count"] == pytest.approx((4 * 4 + 2 * 2) / 6)


def test_torchmetrics_are_computed_over_all_batches_once():
    from torchmetrics import MeanSquaredError, MetricCollection
    from torchmetrics.regression import MeanAbsoluteError

    metrics = {"mse": MeanSquaredError(), "all": MetricCollection([MeanAbsoluteError()])}
    trainer = make_trainer(val_data=make_data(10), metrics=metrics)
    results = trainer.validate()
    model = trainer.run.model
    inputs = torch.cat([batch[0] for batch in make_data(10)])
    targets = torch.cat([batch[1] for batch in make_data(10)])
    with torch.no_grad():
        error = model(inputs) - targets
    assert results["mse"] == pytest.approx((error**2).mean().item())
    assert results["all/MeanAbsoluteError"] == pytest.approx(error.abs().mean().item())
    assert results["loss"] == pytest.approx(results["mse"])


def test_a_collection_of_torchmetrics_brings_its_names():
    from torchmetrics import MeanSquaredError, MetricCollection

    class Watch(Hook):
        reads = ("val/mse",)

    metrics = MetricCollection({"mse": MeanSquaredError()})
    trainer = make_trainer(val_data=make_data(10), metrics=metrics, hooks=[Watch()])
    results = trainer.validate()
    assert set(results) == {"val/loss", "val/mse"}
    assert results["mse"] == pytest.approx(results["loss"])


def test_several_streams_have_their_own_metrics():
    streams = {"a": make_data(4), "b": make_data(8)}
    results = make_trainer(val_data=streams).validate()
    assert set(results) == {"val/a/loss", "val/b/loss"}


def test_test_data_without_targets_needs_no_loss(tmp_path):
    hook, calls = record(["after_test_iter"], lambda run: tuple(run.output.shape))
    make_trainer(hooks=[hook], data={"test": [torch.ones(5, 4)]}, run_dir=tmp_path).test()
    assert calls == [("after_test_iter", (5, 1))]


def test_evaluation_builds_no_graph(tmp_path):
    hook, calls = record(["after_val_iter"], lambda run: run.loss.requires_grad)
    make_trainer(hooks=[hook], val_data=make_data(4), run_dir=tmp_path).validate()
    assert calls == [("after_val_iter", False)]


def test_every_update_begins_with_the_batch_itself_also_in_evaluations(tmp_path):
    def steps():
        def step(run, batch):
            return functional.mse_loss(run.model(batch[0]), batch[1])

        return {"one": step, "two": step}

    def losses(directory, *hooks, data):
        model = make_model()
        optimizers = {name: torch.optim.SGD(model.parameters(), lr=0.05) for name in steps()}
        trainer = make_trainer(
            model=model,
            step=steps(),
            optimizer=optimizers,
            hooks=hooks,
            train_data=data(make_data()),
            val_data=data(make_data(8)),
            run_dir=directory,
        )
        trainer.train()
        return trainer.run.metrics.all_latest()

    ours = losses(tmp_path / "hook", Negate("before_forward"), data=list)
    assert ours == losses(tmp_path / "plain", data=negated)


def test_an_evaluation_counts_the_samples_that_hooks_left(tmp_path):
    class First(Hook):
        def before_forward(self, run):
            if run.phase == "val" and len(run.batch[0]) == 4:
                run.batch = [part[:1] for part in run.batch]

    inputs, targets = samples(6)
    batches = [(inputs[:4], targets[:4]), (inputs[4:], targets[4:])]
    model = make_model()
    kept = torch.cat([inputs[:1], inputs[4:]]), torch.cat([targets[:1], targets[4:]])
    expected = functional.mse_loss(model(kept[0]), kept[1]).item()
    trainer = make_trainer(model=model, hooks=[First()], val_data=batches, run_dir=tmp_path)
    assert trainer.validate()["loss"] == pytest.approx(expected)


def test_a_metric_that_fails_is_named_with_its_batch():
    def wrong(output, targets):
        return (output @ targets).mean()

    notes = notes_of(make_trainer(val_data=make_data(8), metrics={"wrong": wrong}).train)
    assert "in the phase val, after iteration 3" in notes
    assert "the batch is [float32[4, 4], float32[4, 1]], the output is float32[4, 1]" in notes
    assert "while evaluating val_data, batch 1" in notes


def validated_at(**options: object) -> list[int]:
    hook, calls = record(["before_val"], lambda run: run.progress.iter)
    make_trainer(hooks=[hook], val_data=make_data(4), **options).train()
    return [note for _, note in calls]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"max_epochs": 4}, [3, 6, 9, 12]),
        ({"max_epochs": 4, "val_every": "3 epochs"}, [9, 12]),
        ({"max_epochs": 4, "val_every": "2 epochs", "val_every.begin": 3}, [12]),
        ({"max_epochs": 2, "val_every.begin": 5}, []),
        ({"max_epochs": 2, "val_every.at_start": True}, [0, 3, 6]),
        ({"max_epochs": 2, "val_every": 2}, [2, 4, 6]),
        ({"max_iters": 7, "val_every": 2, "val_every.begin": 4}, [4, 6, 7]),
        ({"max_iters": 2}, [2]),
    ],
)
def test_validation_times(options, expected, tmp_path):
    assert validated_at(run_dir=tmp_path, **options) == expected


# --- the metrics that hooks receive --------------------------------------------------------------


class Put(Hook):
    """Computes a number of its own, and corrects one of the evaluation's."""

    priority = "HIGH"
    writes = ("val/score",)

    def after_val_epoch(self, run, metrics):
        assert "score" not in metrics
        run.metrics.put("val/score", run.progress.epoch + 0.5)
        assert metrics["val/score"] == metrics["score"] == run.progress.epoch + 0.5
        metrics["accuracy"] = 0.125


def test_the_metrics_are_a_live_view_by_full_names(tmp_path):
    seen = []

    class See(Hook):
        reads = ("val/score",)

        def after_val_epoch(self, run, metrics):
            seen.append(dict(metrics))

    trainer = make_classifier(hooks=[See(), Put()], max_epochs=2, run_dir=tmp_path)
    outcome = trainer.train()
    assert [set(one) for one in seen] == [{"val/loss", "val/accuracy", "val/score"}] * 2
    assert [(one["val/score"], one["val/accuracy"]) for one in seen] == [(1.5, 0.125), (2.5, 0.125)]
    assert outcome.metrics["val/accuracy"] == 0.125 and outcome.metrics["val/score"] == 2.5


def test_so_they_are_with_several_streams_and_what_is_deleted_is_hidden_from_the_caller(tmp_path):
    class Hide(Hook):
        def after_val_epoch(self, run, metrics):
            assert set(metrics) == {"val/a/loss", "val/b/loss"}
            assert metrics["a/loss"] == metrics["val/a/loss"]
            del metrics["b/loss"]

    trainer = make_trainer(
        hooks=[Hide()], val_data={"a": make_data(4), "b": make_data(8)}, run_dir=tmp_path
    )
    assert set(trainer.validate()) == {"val/a/loss"}
    assert "val/b/loss" in trainer.run.metrics


def test_a_test_has_such_a_view_too(tmp_path):
    class Double(Hook):
        def after_test_epoch(self, run, metrics):
            metrics["double"] = 2 * metrics["loss"]

    results = make_trainer(hooks=[Double()], data={"test": make_data(8)}, run_dir=tmp_path).test()
    assert results["test/double"] == pytest.approx(2 * results["loss"])


@pytest.mark.parametrize("phase", ["validate", "test"])
def test_an_evaluation_without_data_is_rejected(phase):
    with pytest.raises(DataError, match="nothing to evaluate: give (val|test)_data="):
        getattr(make_trainer(), phase)()


def test_an_evaluation_leaves_the_mode_of_the_model_and_the_phase_as_they_were(tmp_path):
    trainer = make_trainer(val_data=make_data(4), run_dir=tmp_path)
    for mode in (True, False):
        trainer.run.model.train(mode)
        trainer.validate()
        assert trainer.run.model.training is mode
        assert (trainer.run.phase, trainer.run.stream) == ("train", "train")


def test_the_losses_of_several_updates_are_evaluated_by_name():
    def step_of(factor):
        return lambda run, batch: factor * functional.mse_loss(run.model(batch[0]), batch[1])

    model = make_model()
    optimizers = {name: torch.optim.SGD(model.parameters(), lr=0.1) for name in ("one", "two")}
    trainer = make_trainer(
        model=model,
        step={"one": step_of(1), "two": step_of(3)},
        optimizer=optimizers,
        val_data=make_data(10),
    )
    results = trainer.validate()
    assert set(results) == {"val/one_loss", "val/two_loss"}
    assert results["two_loss"] == pytest.approx(3 * results["one_loss"])


def test_other_numbers_of_a_step_are_averaged_over_an_evaluation_by_its_weights():
    def step(run, batch):
        inputs, targets = batch
        loss = functional.mse_loss(run.model(inputs), targets)
        return {"loss": loss, "size": len(inputs), "largest": inputs.max(), "inputs": inputs}

    data = make_data(10)
    sizes = [len(inputs) for inputs, _ in data]
    assert len(set(sizes)) > 1, "batches of different sizes"
    results = make_trainer(step=step, loss=None, val_data=data).validate()
    assert set(results) == {"val/loss", "val/size", "val/largest"}
    assert results["size"] == pytest.approx(sum(size * size for size in sizes) / sum(sizes))
    largest = sum(len(inputs) * inputs.max().item() for inputs, _ in data) / sum(sizes)
    assert results["largest"] == pytest.approx(largest)


def test_a_metric_comes_before_a_number_of_the_same_name_that_a_step_returns():
    def step(run, batch):
        output = run.model(batch[0])
        loss = functional.mse_loss(output, batch[1])
        return {"loss": loss, "output": output, "quality": 1.0, "other": 2.0}

    trainer = make_trainer(
        step=step, loss=None, val_data=make_data(8), metrics={"quality": lambda output, _: 5.0}
    )
    assert list(trainer.validate().items())[1:] == [("val/quality", 5.0), ("val/other", 2.0)]


def test_a_hook_can_watch_a_number_that_a_step_returns(tmp_path):
    class Watch(Hook):
        reads = ("val/accuracy",)
        seen: list[float] = []  # noqa: RUF012 - of this test

        def after_val_epoch(self, run, metrics):
            self.seen.append(metrics["accuracy"])

    def step(run, batch):
        return {"loss": functional.mse_loss(run.model(batch[0]), batch[1]), "accuracy": 0.5}

    make_trainer(
        step=step, loss=None, val_data=make_data(8), hooks=[Watch()], run_dir=tmp_path
    ).train()
    assert set(Watch.seen) == {0.5}
