import os
import signal

import numpy as np
import pytest
import torch
from tests.tiny import make_classifier, make_data, make_trainer
from torch.utils.data import DataLoader, TensorDataset

from hookloop import Hook, Interrupted
from hookloop.errors import DataError, HookloopError, ModelError
from hookloop.hooks import AugmentAtTest, AverageWeights, MaskOutputs
from hookloop.testing import RecordCalls, tiny_trainer
from hookloop.trainer.trainer import Trainer

INPUTS = torch.randn(10, 4, generator=torch.Generator().manual_seed(5))
SPAN = ["before_predict_iter", "before_forward", "after_forward", "after_predict_iter"]


def expected(trainer):
    with torch.no_grad():
        return trainer.run.model.eval()(INPUTS)


def batches(kind):
    targets = torch.zeros(10)
    return {
        "list": [INPUTS[:6], INPUTS[6:]],
        "pairs": [(INPUTS[:6], targets[:6]), (INPUTS[6:], targets[6:])],
        "loader": DataLoader(TensorDataset(INPUTS), batch_size=4),
        "loader of pairs": DataLoader(TensorDataset(INPUTS, targets), batch_size=3),
        "workers": DataLoader(TensorDataset(INPUTS), batch_size=4, num_workers=2),
        "generator": (part for part in INPUTS.split(4)),
        "tensor": INPUTS,
        "array": INPUTS.numpy(),
        "mappings": [{"input": INPUTS[:9], "id": 3}, {"input": INPUTS[9:], "id": 4}],
    }[kind]


@pytest.mark.parametrize(
    "kind",
    ["list", "pairs", "loader", "loader of pairs", "workers", "generator", "tensor", "array",
     "mappings"],
)  # fmt: skip
def test_outputs_are_joined_in_the_order_of_the_data(kind):
    trainer = make_trainer()
    outputs = trainer.predict(batches(kind))
    assert torch.allclose(outputs, expected(trainer), atol=1e-6)
    assert not outputs.requires_grad
    assert not trainer.run._internals.predict_data


def test_a_prediction_is_a_phase_with_its_own_points():
    recorder = RecordCalls(lambda run: (run.phase, run._internals.purpose, run.stream))
    trainer = tiny_trainer(recorder)
    trainer.train()
    recorder.calls.clear()
    trainer.predict([INPUTS, INPUTS])
    assert recorder.points == [
        "before_run", "before_predict", "before_predict_epoch", *SPAN, *SPAN,
        "after_predict_epoch", "after_predict", "after_run",
    ]  # fmt: skip
    assert recorder.calls[5] == ("after_forward", ("predict", "predict", "predict"))
    assert trainer.run.phase == "train"
    assert trainer.run.model.training


def test_hooks_change_batch_and_output():
    class Double(Hook):
        def before_forward(self, run):
            if run.phase == "predict":
                run.batch = run.batch * 2

        def after_predict_iter(self, run):
            assert run.loss is None
            run.output = run.output + 1

    trainer = make_trainer(hooks=[Double()])
    trainer.train()
    with torch.no_grad():
        wanted = trainer.run.model.eval()(INPUTS * 2) + 1
    assert torch.equal(trainer.predict([INPUTS]), wanted)


def test_averaged_weights_are_used_and_training_continues_exactly():
    plain, trainer = (tiny_trainer(AverageWeights(momentum=0.5)) for _ in range(2))
    plain.train(max_epochs=3)
    trainer.train(max_epochs=2)
    average = trainer.predict(DataLoader(TensorDataset(INPUTS), batch_size=4, shuffle=False))
    assert not torch.allclose(average, expected(trainer))
    trainer.run.model.train()
    trainer.train(max_epochs=3)
    for one, other in zip(
        plain.run.model.parameters(), trainer.run.model.parameters(), strict=True
    ):
        assert torch.equal(one, other)


def test_hooks_for_evaluation_take_part_if_asked():
    mask = MaskOutputs([0, 2], phases=["predict"])
    view = AugmentAtTest([lambda inputs: -inputs], phases=["predict"])
    trainer = tiny_trainer(mask, view)
    outputs = trainer.predict([INPUTS])
    assert torch.isinf(outputs[:, 1]).all()
    assert torch.allclose(outputs[:, 0], trainer.predict([-INPUTS])[:, 0])


def test_files_have_the_same_numbers(tmp_path):
    trainer = make_trainer()
    wanted = trainer.predict(INPUTS)
    data = batches("loader")
    assert trainer.predict(data, to=tmp_path / "out.npz") == tmp_path / "out.npz"
    with np.load(tmp_path / "out.npz") as arrays:
        assert torch.allclose(torch.from_numpy(arrays["output"]), wanted)
    trainer.predict(data, to=str(tmp_path / "out.csv"))
    rows = (tmp_path / "out.csv").read_text().splitlines()
    assert rows[0] == "id,output"
    assert [float(row.split(",")[1]) for row in rows[1:]] == pytest.approx(wanted.ravel().tolist())
    taken = []
    assert trainer.predict(data, to=taken.append) is None
    assert [len(output) for output in taken] == [4, 4, 2]


def test_streams_are_predicted_by_name():
    data = {"clean": make_data(), "noisy": [INPUTS]}
    trainer = make_trainer(val_data=data, data={"test": make_data(), "predict": [INPUTS]})
    assert torch.equal(trainer.predict("val_data.noisy"), trainer.predict())
    assert len(trainer.predict("test_data")) == 12
    with pytest.raises(DataError, match="'val_data.claen'.*'val_data.clean'"):
        trainer.predict("val_data.claen")
    with pytest.raises(DataError, match="nothing to predict"):
        make_trainer().predict()
    with pytest.raises(DataError, match="'predict_data.a'.*'predict_data.b'"):
        make_trainer(data={"predict": {"a": [1], "b": [2]}}).predict()
    with pytest.raises(DataError, match="not a mapping"):
        make_trainer().predict({"a": [INPUTS]})
    with pytest.raises(HookloopError, match="empty"):
        make_trainer().predict([])


def test_a_step_may_compute_the_output():
    def step(run, batch):
        return run.model(batch[0]).mean()

    trainer = make_trainer(step=step, default_hooks=False)
    assert torch.allclose(trainer.predict(batches("pairs")), expected(trainer), atol=1e-6)
    outputs = trainer.predict([INPUTS], step=lambda run, batch: {"twice": 2 * run.model(batch)})
    assert torch.allclose(outputs["twice"], 2 * expected(trainer), atol=1e-6)


def test_lower_precision_is_that_of_the_training():
    trainer = make_trainer(precision="bf16")
    assert trainer.predict([INPUTS]).dtype == torch.bfloat16


def test_a_model_alone_can_predict(tmp_path):
    model = torch.nn.Linear(4, 2)
    trainer = Trainer(model, run_dir=tmp_path / "run")
    assert trainer.predict([INPUTS]).shape == (10, 2)
    with pytest.raises(DataError, match="must end in"):
        trainer.predict([INPUTS], to="out.xlsx")


def test_a_signal_leaves_no_file_and_no_result(tmp_path):
    class Kill(Hook):
        def after_predict_iter(self, run):
            os.kill(os.getpid(), signal.SIGTERM)

    (tmp_path / "out.csv").write_text("old")
    trainer = make_trainer(
        hooks=[Kill()], default_hooks={"console": None}, run_dir=tmp_path / "run"
    )
    for to in (None, tmp_path / "out.csv"):
        with pytest.raises(Interrupted) as caught:
            trainer.predict([INPUTS] * 1000, to=to)
        assert caught.value.code == 143
    assert (tmp_path / "out.csv").read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"out.csv", "run"}


def test_an_error_names_the_batch():
    with pytest.raises(RuntimeError) as caught:
        make_trainer().predict([INPUTS, INPUTS[:, :2]])
    assert any("predict_data, batch 2" in note for note in caught.value.__notes__)


def test_metrics_that_nothing_computes_are_reported(caplog):
    make_classifier(val_data=None, data={"test": None}).train()
    (text,) = caplog.messages
    assert "val_data=" in text
    caplog.clear()
    make_classifier().train()
    assert caplog.messages == []


def test_a_metric_that_fails_is_named():
    def broken(output, targets):
        raise IndexError("no such column")

    with pytest.raises(IndexError) as caught:
        make_classifier(metrics={"broken": broken}).train()
    assert any("in the metric 'broken'" in note for note in caught.value.__notes__)


def test_a_training_without_gradients_is_told_so():
    with torch.no_grad(), pytest.raises(ModelError, match="no_grad"):
        make_classifier().train()
