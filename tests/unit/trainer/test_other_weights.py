import pytest
import torch
from tests.names import iter_file
from tests.ranks import on_ranks

from hookloop import Hook, Interrupted
from hookloop.checkpoint.shards.dtensors import local_part
from hookloop.checkpoint.state.compare import compare
from hookloop.errors import CheckpointError, HookError
from hookloop.hooks import AverageWeights, MomentumTeacher, SaveCheckpoint
from hookloop.testing import tiny_trainer
from hookloop.trainer.other_weights import OtherWeights, best_of


def assert_same_bits(one, other):
    assert not compare(dict(one), dict(other))


def make(run_dir, *hooks, **options):
    """A training that gets worse, so that the best checkpoint is not the last one."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 3)
    )
    save = SaveCheckpoint(every=1, keep=None, best=["val/loss", "val/accuracy"], **options)
    optimizer = torch.optim.SGD(model.parameters(), lr=30.0, momentum=0.9)
    return tiny_trainer(
        save, *hooks, model=model, optimizer=optimizer, run_dir=run_dir, val_every=1
    )


@pytest.mark.slow
@pytest.mark.parametrize("hooks", [(), (AverageWeights, MomentumTeacher)])
def test_the_best_is_tested_and_the_training_continues_exactly(tmp_path, hooks):
    plain = make(tmp_path / "plain", *(hook() for hook in hooks))
    plain.train(max_epochs=3)
    trainer = make(tmp_path / "tested", *(hook() for hook in hooks))
    best = trainer.train(max_epochs=2).best
    before = {name: value.clone() for name, value in trainer.run.model.state_dict().items()}
    last = trainer.test()
    assert trainer.test(checkpoint="best")["test/loss"] == best.value
    assert trainer.validate(checkpoint="best")["val/loss"] == best.value
    assert trainer.test(checkpoint=best.path)["test/loss"] == best.value
    assert last == trainer.test() == trainer.test(checkpoint="last")
    assert last["test/loss"] > best.value
    assert_same_bits(before, trainer.run.model.state_dict())
    trainer.train(max_epochs=3)
    assert_same_bits(plain.run.model.state_dict(), trainer.run.model.state_dict())
    assert plain.test() == trainer.test()


def test_the_outcome_has_the_best_of_each_metric(tmp_path):
    trainer = make(tmp_path / "one")
    outcome = trainer.train()
    assert outcome.best == outcome.all_best[0]
    assert [best.metric for best in outcome.all_best] == ["val/loss", "val/accuracy"]
    assert outcome.best.path == f"{tmp_path}/one/best_loss_iter_{outcome.best.iteration}.pth"
    assert str(outcome.best).endswith(f"iteration {outcome.best.iteration})")
    again = make(tmp_path / "one")
    resumed = tiny_trainer(
        *again.run.hooks, SaveCheckpoint(every=1, best="val/loss"), run_dir=tmp_path / "one",
        model=again.run.model, optimizer=again.run.optimizer, resume=True,
    )  # fmt: skip
    assert resumed.train().best == outcome.best
    assert tiny_trainer().train().best is None


def test_an_evaluation_that_fails_puts_the_weights_back(tmp_path):
    class Fail(Hook):
        def after_test_iter(self, run):
            raise RuntimeError("no")

    trainer = make(tmp_path, AverageWeights(), Fail())
    trainer.train()
    before = {name: value.clone() for name, value in trainer.run.model.state_dict().items()}
    with pytest.raises(RuntimeError):
        trainer.test(checkpoint="best")
    assert_same_bits(before, trainer.run.model.state_dict())


@pytest.mark.slow
def test_load_best_leaves_the_best_weights_and_the_files(tmp_path):
    plain = make(tmp_path / "plain", AverageWeights())
    plain.train(max_epochs=3)
    trainer = make(tmp_path / "best", AverageWeights(), load_best=True)
    outcome = trainer.train(max_epochs=2)
    assert trainer.test()["test/loss"] == outcome.best.value
    last = torch.load(tmp_path / f"best/{iter_file(6)}")["model"]
    of_plain = torch.load(tmp_path / f"plain/{iter_file(6)}")["model"]
    assert_same_bits(last, of_plain)
    assert f"best weights now: {outcome.best.path}" in (tmp_path / "best/run.log").read_text()
    trainer.train(max_epochs=3)  # It continues where it ended, and not from the best.
    assert_same_bits(
        torch.load(tmp_path / f"best/{iter_file(9)}")["model"], plain.run.model.state_dict()
    )


def test_a_completed_run_is_loaded_with_its_best(tmp_path):
    outcome = make(tmp_path, load_best=True).train()
    torch.manual_seed(9)
    model = make(tmp_path / "other").run.model
    again = tiny_trainer(
        SaveCheckpoint(every=1, keep=None, best=["val/loss", "val/accuracy"], load_best=True),
        model=model, optimizer=torch.optim.SGD(model.parameters(), lr=30.0, momentum=0.9),
        run_dir=tmp_path, val_every=1, resume=True,
    )  # fmt: skip
    assert again.train().best == outcome.best
    assert again.test()["test/loss"] == outcome.best.value


def test_load_best_needs_a_best(tmp_path, capsys):
    with pytest.raises(HookError, match="load_best=True.*best="):
        SaveCheckpoint(load_best=True)
    save = SaveCheckpoint(best="val/loss", load_best=True)
    trainer = tiny_trainer(save, run_dir=tmp_path, max_epochs=1, val_every={"begin": 5})
    assert trainer.train().status == "completed"
    assert "keeps its last weights" in capsys.readouterr().err


def test_an_interrupted_training_keeps_its_weights(tmp_path):
    class Signal(Hook):
        def after_train_iter(self, run):
            if run.progress.iter == 5:
                run.stop("SIGTERM", signal=15)

    trainer = make(tmp_path, Signal(), load_best=True)
    with pytest.raises(Interrupted):
        trainer.train()
    saved = torch.load(tmp_path / iter_file(5))["model"]
    assert_same_bits(saved, trainer.run.model.state_dict())


def test_a_file_of_weights_alone_is_evaluated_without_an_average(tmp_path):
    trainer = make(tmp_path / "run", AverageWeights())
    trainer.train()
    torch.save(trainer.run.model.state_dict(), tmp_path / "weights.pth")
    plain = tiny_trainer(model=trainer.run.model)
    assert trainer.test(checkpoint=tmp_path / "weights.pth") == plain.test()
    torch.save(torch.nn.Linear(2, 2).state_dict(), tmp_path / "other.pth")
    before = {name: value.clone() for name, value in trainer.run.model.state_dict().items()}
    with pytest.raises(CheckpointError, match="does not fit the model"):
        trainer.test(checkpoint=tmp_path / "other.pth")
    assert_same_bits(before, trainer.run.model.state_dict())


def test_a_missing_checkpoint_is_rejected(tmp_path):
    trainer = make(tmp_path)
    trainer.train()
    with pytest.raises(CheckpointError, match="'iter_77.pth'"):
        trainer.test(checkpoint=iter_file(77))
    assert len(best_of(trainer.run)) == 2
    OtherWeights(trainer.run, iter_file(2)).put_back()


def evaluate_on_ranks(run_dir, parallel):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 3))
    trainer = tiny_trainer(
        SaveCheckpoint(every=1, best="val/loss"),
        AverageWeights(),
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=30.0),
        run_dir=run_dir,
        val_every=1,
        parallel=parallel,
    )
    outcome = trainer.train()
    before = {name: value.clone() for name, value in trainer.run.model.state_dict().items()}
    result = trainer.test(checkpoint="best")["test/loss"]
    outputs = trainer.predict("val_data")
    trainer.predict("val_data", to=run_dir / "out.csv")
    after = trainer.run.model.state_dict()
    parts = [(local_part(before[name]), local_part(after[name])) for name in before]
    assert all(torch.equal(*pair) for pair in parts)
    return outcome.best.value, result, outputs


@pytest.mark.slow
@pytest.mark.parametrize("parallel", ["replicated", "sharded"])
def test_two_ranks_evaluate_and_predict_as_one(tmp_path, parallel):
    first, second = on_ranks(evaluate_on_ranks, 2, tmp_path / "two", parallel)
    assert first[0] == pytest.approx(first[1])
    assert torch.equal(first[2], second[2])
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 3))
    one = tiny_trainer(
        AverageWeights(),
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=30.0),
        run_dir=tmp_path / "two",
        resume=True,
    )
    assert torch.allclose(one.predict("val_data"), first[2], rtol=1e-4)
    rows = (tmp_path / "two/out.csv").read_text().splitlines()
    assert len(rows) == len(first[2]) + 1


def test_what_the_model_and_the_loss_hold_beside_weights_is_that_of_the_checkpoint(tmp_path):
    class Cooling(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.temperature = torch.nn.Linear(4, 3), 1.0

        def forward(self, inputs):
            if self.training:
                self.temperature *= 0.5
            return self.inner(inputs) * self.temperature

    class Scaled(torch.nn.CrossEntropyLoss):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(()))

        def forward(self, output, targets):
            return super().forward(output, targets) * self.scale

    def make_cooling():
        torch.manual_seed(0)
        model, loss = Cooling(), Scaled()
        optimizer = torch.optim.SGD([*model.parameters(), loss.scale], lr=0.1)
        save = SaveCheckpoint(every=1, keep=None)
        return tiny_trainer(
            save, model=model, loss=loss, optimizer=optimizer, run_dir=tmp_path, resume="auto"
        )

    trainer = make_cooling()
    trainer.train(max_epochs=1)
    first = trainer.test()["test/loss"]
    trainer.train(max_epochs=3)
    last, held = trainer.test()["test/loss"], trainer.run.model.temperature
    assert first != last
    assert trainer.test(checkpoint=iter_file(3))["test/loss"] == first
    assert (trainer.test()["test/loss"], trainer.run.model.temperature) == (last, held)
