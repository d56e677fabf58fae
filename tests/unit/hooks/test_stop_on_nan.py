import pytest
import torch
from tests.names import epoch_file, iter_file
from tests.tiny import assert_same_bits, make_data, make_model, make_trainer

from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.hooks import SaveCheckpoint, StopOnNaN


class Spoil(Hook):
    """Damages one thing in one iteration."""

    priority = 10

    def __init__(self, what, iter, value=float("nan")):
        self.what, self.iter, self.value = what, iter, value

    def after_forward(self, run):
        if self.what == "output" and run.progress.iter + 1 == self.iter:
            run.output = run.output.clone()
            run.output.data[0, 0] = self.value

    def after_loss(self, run):
        if self.what == "loss" and run.progress.iter + 1 == self.iter:
            run.loss = run.loss * self.value

    def before_update(self, run):
        if self.what == "gradient" and run.progress.iter + 1 == self.iter:
            list(run.model.parameters())[2].grad[0] = self.value


def trainer(tmp_path, *hooks, **options):
    return make_trainer(hooks=hooks, run_dir=tmp_path, max_epochs=4, **options)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize(
    ("what", "options", "named"),
    [
        ("loss", {}, "the loss is"),
        ("output", {"outputs": True, "loss": False}, "output is"),
        ("gradient", {"gradients": True, "loss": False}, "the gradient of '2.weight' is"),
    ],
)
def test_the_first_bad_number_is_named_before_the_weights_are_touched(
    what, options, named, value, tmp_path
):
    run = trainer(tmp_path, Spoil(what, 5, value), StopOnNaN(every=1, **options))
    with pytest.raises(FloatingPointError) as error:
        run.train()
    location = r"in iteration 5 (train batch 1 of the epoch, microbatch 0); the weights are still"
    assert str(error.value).startswith(named)
    assert location in str(error.value)
    assert run.run.progress.iter == 4  # The fifth iteration was not completed.
    assert run.run.outcome.exit_code == 1


def test_an_interval_is_read_late_but_the_first_bad_iteration_is_reported(tmp_path):
    run = trainer(tmp_path, Spoil("loss", 2), StopOnNaN(every=10))
    with pytest.raises(FloatingPointError, match="iteration 2.*'0.w"):
        run.train()
    assert run.run.progress.iter == 10


def test_what_is_left_at_the_end_is_read(tmp_path):
    run = trainer(tmp_path, Spoil("loss", 11), StopOnNaN(every=1000))
    with pytest.raises(FloatingPointError, match="in iteration 11 "):
        run.train()


def test_no_checkpoint_is_written_with_damaged_weights(tmp_path):
    hooks = Spoil("loss", 5), StopOnNaN(every=1000), SaveCheckpoint("1 epoch")
    with pytest.raises(FloatingPointError):
        trainer(tmp_path, *hooks).train()
    assert [path.name for path in tmp_path.glob("*.pth")] == [epoch_file(1)]


def test_it_can_end_the_run_normally(tmp_path):
    outcome = trainer(tmp_path, Spoil("loss", 5), StopOnNaN(every=1, action="stop")).train()
    assert (outcome.status, outcome.exit_code) == ("stopped", 0)
    assert outcome.reason.startswith("the loss is nan in iteration 5")


def test_the_microbatch_is_reported(tmp_path):
    class Second(Hook):
        def after_loss(self, run):
            self.count = getattr(self, "count", 0) + 1
            if self.count == 4:  # Three microbatches per iteration: the first of the second.
                run.loss = run.loss * float("nan")

    run = trainer(tmp_path, Second(), StopOnNaN(every=1), accumulate=3)
    with pytest.raises(FloatingPointError, match="iteration 2 .* microbatch 0"):
        run.train()


def test_a_dump_holds_the_batch_and_loads_without_running_code(tmp_path):
    run = trainer(
        tmp_path, Spoil("loss", 5), StopOnNaN(every=4, dump=True, action="stop", outputs=True)
    )
    run.train()
    found = torch.load(tmp_path / "nan_iter_5.pt", weights_only=True)
    assert (found["iter"], found["index_in_epoch"], found["stream"]) == (5, 1, "train")
    # The batch of the bad iteration, not the one of the iteration in which it was found.
    assert torch.equal(found["batch"][0], list(make_data())[1][0])
    assert set(found["outputs"]) == {"output"}
    assert found["loss"].isnan()
    assert "0.weight" in found["gradients"]


def test_validation_is_watched_when_asked_for(tmp_path):
    class SpoilVal(Hook):
        priority = 10

        def after_loss(self, run):
            if run.phase == "val":
                run.loss = run.loss * float("nan")

    options = {"val_data": make_data(4)}
    assert trainer(tmp_path / "a", SpoilVal(), StopOnNaN(), **options).train().exit_code == 0
    with pytest.raises(FloatingPointError, match="after iteration 3 .val batch 0.;"):
        trainer(tmp_path / "b", SpoilVal(), StopOnNaN(phases=["train", "val"]), **options).train()


def test_a_healthy_training_is_not_changed(tmp_path):
    plain, watched = make_model(), make_model()
    trainer(tmp_path / "a", model=plain).train()
    hook = StopOnNaN(outputs=True, gradients=True, every=2)
    assert trainer(tmp_path / "b", hook, model=watched).train().status == "completed"
    assert_same_bits(plain, watched)


def test_nothing_is_read_between_intervals(tmp_path, monkeypatch):
    reads = []
    # Converting a tensor to a bool is what makes the host wait for the device.
    original = torch.Tensor.__bool__
    monkeypatch.setattr(torch.Tensor, "__bool__", lambda self: reads.append(1) or original(self))
    trainer(tmp_path, StopOnNaN(outputs=True, gradients=True, every=6)).train()
    assert len(reads) == 2  # Twelve iterations, one read every six.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"loss": False}, "checks nothing"),
        ({"action": "cry"}, "write 'raise' or 'stop'"),
        ({"phases": ["valid"]}, "some of train, val, test"),
        ({"every": "2 epochs"}, "iterations or time"),
    ],
)
def test_wrong_arguments_are_rejected(arguments, message):
    with pytest.raises(HookError, match=message):
        StopOnNaN(**arguments)


def test_a_run_that_is_stopped_at_once_saves_finite_weights(tmp_path):
    hooks = Spoil("loss", 5), StopOnNaN(every=1, action="stop"), SaveCheckpoint("1 epoch")
    outcome = trainer(tmp_path, *hooks).train()
    assert "the weights are still finite" in outcome.reason
    saved = torch.load(tmp_path / iter_file(5), weights_only=True)
    assert all(tensor.isfinite().all() for tensor in saved["model"].values())


def test_a_stop_that_comes_late_writes_no_damaged_checkpoint(tmp_path):
    hooks = Spoil("loss", 5), StopOnNaN(every=3, action="stop"), SaveCheckpoint("1 epoch")
    with pytest.raises(FloatingPointError, match="no checkpoint is written: the loss is nan in"):
        trainer(tmp_path, *hooks).train()
    assert [path.name for path in tmp_path.glob("*.pth")] == [epoch_file(1)]


def test_a_batch_of_an_evaluation_is_counted_in_its_stream(tmp_path):
    class SpoilSecond(Hook):
        priority = 10

        def after_forward(self, run):
            if run.stream == "noisy" and torch.equal(run.batch[0], list(make_data())[1][0]):
                run.output = run.output * float("nan")

    streams = {"clean": make_data(), "noisy": make_data()}
    hooks = SpoilSecond(), StopOnNaN(phases=["val"], every=1)
    with pytest.raises(FloatingPointError, match=r"iteration 3.*\(noisy batch 1\)"):
        trainer(tmp_path, *hooks, val_data=streams).train()
