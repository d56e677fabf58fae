import pytest
import torch
from tests.ranks import on_ranks
from tests.tiny import make_data, make_model, make_trainer, record

from hookloop.errors import HookError
from hookloop.hooks import ClipGradients, LogMetrics, RecordNorms, ShowProgress
from hookloop.testing import assert_hook_contract

ALL = ["grad", "weight", "update", "activation"]


def test_norms_are_those_of_the_iteration(tmp_path):
    look, calls = record(
        ["before_train_iter", "before_update", "after_update"],
        lambda run: {
            n: (p.detach().clone(), None if p.grad is None else p.grad.clone())
            for n, p in run.model.named_parameters()
        },
    )
    look.priority = 0
    hooks = [look, ClipGradients(1e-3), RecordNorms(ALL, every=2)]
    trainer = make_trainer(hooks=hooks, run_dir=tmp_path)
    trainer.train()
    metrics = trainer.run.metrics
    start, update, end = (
        dict(calls[3:6])[p] for p in ("before_train_iter", "before_update", "after_update")
    )
    for name in start:
        for kind, value in (
            ("grad", update[name][1]),
            ("weight", end[name][0]),
            ("update", end[name][0] - start[name][0]),
        ):
            assert metrics.latest(f"norms/{kind}/{name}") == pytest.approx(value.norm().item())
    total = sum(update[name][1].norm() ** 2 for name in update) ** 0.5
    assert metrics.latest("norms/grad") == pytest.approx(total.item())
    assert {n for n in metrics.names() if n.startswith("norms/activation/")} == {
        f"norms/activation/{n}" for n in "012"
    }


def test_the_activation_is_that_of_the_module(tmp_path):
    model = make_model()
    expected = []
    data = make_data()

    def step(run, batch):
        if run.phase == "train":
            with torch.no_grad():
                expected.append(model[:2](batch[0]).norm().item())
        return (run.model(batch[0]) - batch[1]).square().mean()

    trainer = make_trainer(
        model=model, step=step, train_data=data, val_data=data, val_every=1,
        hooks=[RecordNorms(["activation"], ["1"], every=1)], run_dir=tmp_path,
    )  # fmt: skip
    trainer.train()
    series = trainer.run.metrics.series("norms/activation/1")
    assert [float(value) for value in series.recent] == pytest.approx(expected)


def test_nothing_is_attached_in_other_iterations(tmp_path):
    look, calls = record(["before_forward"], lambda run: len(run.model[0]._forward_hooks))
    look.priority = 100
    hooks = [RecordNorms(ALL, every=3), look]
    trainer = make_trainer(hooks=hooks, run_dir=tmp_path, max_epochs=2)
    trainer.train()
    assert [count for _, count in calls] == [0, 0, 1, 0, 0, 1]
    assert trainer.run.metrics.series("norms/grad").count == 2
    assert not trainer.run.model[0]._forward_hooks


def test_the_console_shows_the_totals_only(tmp_path, caplog, capsys):
    hooks = [RecordNorms(every=1), LogMetrics(every=1), ShowProgress()]
    with caplog.at_level("INFO"):
        make_trainer(hooks=hooks, run_dir=tmp_path).train()
    captured = capsys.readouterr()
    for shown in (caplog.text, captured.out + captured.err):
        assert "norms/grad " in shown and "norms/grad/" not in shown


def test_a_frozen_parameter_has_a_weight_and_no_gradient(tmp_path):
    model = make_model()
    model[0].requires_grad_(False)
    trainer = make_trainer(model=model, hooks=[RecordNorms(every=1)], run_dir=tmp_path)
    trainer.train()
    assert "norms/weight/0.weight" in trainer.run.metrics
    assert "norms/grad/0.weight" not in trainer.run.metrics
    assert "norms/update/0.weight" not in trainer.run.metrics


def test_a_failed_iteration_leaves_no_hooks_of_torch(tmp_path):
    model = make_model()

    def step(run, batch):
        run.model(batch[0])
        raise ZeroDivisionError

    trainer = make_trainer(
        model=model, step=step, hooks=[RecordNorms(ALL, every=1)], run_dir=tmp_path
    )
    with pytest.raises(ZeroDivisionError):
        trainer.train()
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.slow
def test_it_keeps_the_contract_with_all_kinds():
    assert_hook_contract(lambda: RecordNorms(ALL, every=2))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"of": ["grads"]}, "Did you mean 'grad'"),
        ({"of": []}, "at least one"),
        ({"every": "5 min"}, "give iterations"),
    ],
)
def test_wrong_arguments_are_rejected(options, words):
    with pytest.raises(HookError, match=words):
        RecordNorms(**options)


def test_a_pattern_without_a_match_is_rejected(tmp_path):
    trainer = make_trainer(hooks=[RecordNorms(patterns=["3.wieght"])], run_dir=tmp_path)
    with pytest.raises(HookError, match="3.wieght"):
        trainer.train()


def norms_on_rank(parallel):
    trainer = make_trainer(hooks=[RecordNorms(ALL, every=1)], parallel=parallel)
    trainer.train()
    latest = trainer.run.metrics.all_latest()
    return {name: value for name, value in latest.items() if name.startswith("norms/")}


@pytest.mark.slow
@pytest.mark.parametrize("parallel", ["replicated", "sharded"])
def test_ranks_have_the_norms_of_one_process(parallel):
    alone = norms_on_rank("auto")
    for of_rank in on_ranks(norms_on_rank, 2, parallel):
        assert of_rank == pytest.approx(alone, rel=1e-4)
