"""Evaluations, and the best checkpoint."""

import json

import pytest
import torch
from tests.imix.tracing import train
from tests.tiny import make_data

from hookloop.hooks import SaveCheckpoint
from hookloop_dialects.imix import engine


def test_evaluations_are_written_and_the_best_is_kept(tmp_path):
    results = iter([0.5, 0.9, 0.7])
    hook = engine.hooks.EvaluateHook(lambda: {"accuracy": next(results)})
    train(tmp_path, hook, max_epochs=3)
    lines = (tmp_path / "run" / "eval_result.json").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    assert [(line["epoch"], line["iter"], line["accuracy"]) for line in found] == [
        (0, 3, 0.5), (1, 6, 0.9), (2, 9, 0.7),
    ]  # fmt: skip
    best = torch.load(tmp_path / "run" / "best_result.pth", weights_only=True)
    assert best["progress"]["epoch"] == 2
    alone = torch.load(tmp_path / "run" / "model_best.pth", weights_only=True)
    assert "optimizers" not in alone
    assert torch.equal(alone["model"]["0.weight"], best["model"]["0.weight"])


def test_evaluations_by_iteration_spare_the_end_of_an_epoch(tmp_path):
    hook = engine.hooks.EvaluateHook(lambda: {"a": 1.0}, eval_iter_period=3)
    train(tmp_path, hook, train_data=make_data(24), max_epochs=1)
    lines = (tmp_path / "run" / "eval_result.json").read_text().splitlines()
    assert [json.loads(line)["iter"] for line in lines] == [2, 6]


def lines(tmp_path):
    text = (tmp_path / "run" / "eval_result.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_a_training_by_iteration_is_evaluated_at_the_period_and_the_end(tmp_path):
    train(tmp_path, engine.hooks.EvaluateHook(lambda: {"a": 1}, 2), max_iters=5)
    assert [line["iter"] for line in lines(tmp_path)] == [1, 3, 4]


@pytest.mark.parametrize(
    ("results", "best"),
    [
        ([(1, 5), (1, 6), (0, 9)], (1, 6)),
        ([(2, 0), (1, 9)], (2, 0)),
        ([(1, 1), (1, 1)], (1, 1)),
    ],
)
def test_ties_are_decided_by_the_next_metric(results, best, tmp_path):
    values = iter(results)
    hook = engine.hooks.EvaluateHook(lambda: dict(zip("ab", next(values), strict=True)))
    train(tmp_path, hook, max_epochs=len(results))
    assert hook.best == best


def test_the_best_survives_a_resume(tmp_path):
    train(tmp_path, engine.hooks.EvaluateHook(lambda: {"a": 5}), SaveCheckpoint())
    again = engine.hooks.EvaluateHook(lambda: {"a": 3})
    train(tmp_path, again, SaveCheckpoint(), max_epochs=2, resume=True)
    assert again.best == (5.0,)
    best = torch.load(tmp_path / "run" / "best_result.pth", weights_only=True)
    assert best["progress"]["epoch"] == 1


def test_the_model_is_trained_as_before_after_an_evaluation(tmp_path):
    def evaluate():
        trainer_models[0].eval()
        return

    model = torch.nn.Sequential(torch.nn.Linear(4, 1))
    trainer_models = [model]
    hook = engine.hooks.EvaluateHook(evaluate)
    train(tmp_path, hook, model=model)
    assert model.training and hook.best is None
    assert lines(tmp_path)[0]["model_name"] == "Sequential"


def test_evaluations_can_be_turned_off(tmp_path):
    hook = engine.hooks.EvaluateHook(lambda: 1 / 0, 1, is_run_eval=False)
    train(tmp_path, hook, train_data=make_data(8))
    assert not (tmp_path / "run" / "eval_result.json").exists()
