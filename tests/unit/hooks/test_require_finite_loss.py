import json
import logging
from math import isnan

import pytest
import torch
from tests.names import epoch_file
from tests.tiny import make_data, make_model, make_trainer

from hookloop import Hook
from hookloop.hooks import RequireFiniteLoss, SaveCheckpoint

NAN = float("nan")


class Spoil(Hook):
    """Makes something not finite, in some iterations."""

    takes_part_in_training = True
    priority = 10

    def __init__(self, what, *iters, value=NAN):
        self.what, self.iters, self.value = what, iters, value

    def after_loss(self, run):
        if run.phase == "train" and run.progress.iter + 1 in self.iters:
            if self.what == "loss":  # The gradients become NaN, and then the weights.
                run.loss = run.loss * self.value
            if self.what == "number":  # Adding a constant does not change the gradients.
                run.loss = run.loss + self.value

    def after_update(self, run):
        if self.what == "weights" and run.progress.iter + 1 in self.iters:
            with torch.no_grad():
                next(run.model.parameters()).fill_(self.value)


def train(run_dir, *hooks, default_hooks=None, **options):
    defaults = {"console": None} if default_hooks is None else default_hooks
    parts = {"max_epochs": 40, "hooks": hooks, "default_hooks": defaults, "run_dir": run_dir}
    trainer = make_trainer(**(parts | options))
    return trainer, trainer.train


@pytest.mark.parametrize("value", [NAN, float("inf"), -float("inf")])
def test_a_run_whose_loss_is_not_finite_fails_with_an_explanation(value, tmp_path):
    _, run = train(tmp_path / "run", Spoil("loss", 32, value=value))
    with pytest.raises(FloatingPointError) as caught:
        run()
    message = str(caught.value)
    assert "in iteration 32 (" in message
    assert "the weights are damaged, starting with '0.weight'" in message
    assert "clip_norm=1.0" in message and "default_hooks={'nan': None}" in message


def test_the_good_checkpoints_stay(tmp_path):
    run_dir = tmp_path / "run"
    _, run = train(run_dir, Spoil("loss", 8))
    with pytest.raises(FloatingPointError):
        run()
    # Iteration 8 is in the third epoch.
    assert {path.name for path in run_dir.glob("*.pth")} == {epoch_file(1), epoch_file(2)}
    index = json.loads((run_dir / "checkpoints.json").read_text())
    assert epoch_file(2) in str(index) and epoch_file(3) not in str(index)
    assert (run_dir / "last_checkpoint").read_text().strip().endswith(epoch_file(2))
    for path in run_dir.glob("*.pth"):
        state = torch.load(path, weights_only=True)["model"]
        assert all(tensor.isfinite().all() for tensor in state.values())


@pytest.mark.parametrize("what", ["loss", "weights"])
@pytest.mark.parametrize("save", ["1 epoch", 1, 4, None])
def test_no_checkpoint_holds_damaged_weights_whenever_it_is_made(what, save, tmp_path):
    run_dir = tmp_path / "run"
    checkpoint = {"checkpoint": SaveCheckpoint(save, keep=1), "console": None}
    # Also in the iteration of the save itself, when the loss is still finite.
    _, run = train(run_dir, Spoil(what, 12), default_hooks=checkpoint, max_epochs=4)
    with pytest.raises(FloatingPointError):
        run()
    for path in run_dir.glob("*.pth"):
        state = torch.load(path, weights_only=True)["model"]
        assert all(tensor.isfinite().all() for tensor in state.values())
    assert list(run_dir.glob("*.pth")) or save is None


@pytest.mark.slow
def test_it_can_be_left_out(tmp_path):
    trainer, run = train(
        tmp_path / "run", Spoil("loss", 2), default_hooks={"nan": None, "console": None}
    )
    assert run().status == "completed"
    assert isnan(trainer.run.metrics.latest("train/loss"))


@pytest.mark.slow
def test_a_single_bad_loss_that_harms_nothing_is_a_warning(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        _, run = train(tmp_path / "run", Spoil("number", 5, 20), max_epochs=20)
        assert run().status == "completed"
    assert caplog.text.count("the weights are finite, the training continues") == 1
    assert "train/loss is nan in iteration 5" in caplog.text


def test_a_loss_that_stays_nan_is_an_error_even_with_finite_weights(tmp_path):
    _, run = train(tmp_path / "run", Spoil("number", *range(20, 1000)))
    with pytest.raises(FloatingPointError, match="in iteration 20 .*still finite"):
        run()


@pytest.mark.slow
def test_a_step_that_was_skipped_by_the_scaler_does_not_end_the_run(tmp_path):
    class Skip(Hook):
        """Skips updates with gradients that are not finite, as a loss scaler does."""

        takes_part_in_training = True

        def before_update(self, run):
            if any(not weight.grad.isfinite().all() for weight in run.model.parameters()):
                run.model.zero_grad(set_to_none=True)

    _, run = train(tmp_path / "run", Spoil("loss", 3, 21, 50, value=float("inf")), Skip())
    assert run().status == "completed"


def test_each_of_several_losses_is_checked(tmp_path):
    model = torch.nn.ModuleDict({"a": make_model(), "b": make_model()})

    def step_of(name):
        def step(run, batch):
            loss = run.model[name](batch[0]).square().mean()
            if name == "a":
                return loss
            return loss * NAN if run.progress.iter == 7 else loss

        return step

    _, run = train(
        tmp_path / "run",
        model=model,
        optimizer={name: torch.optim.SGD(model[name].parameters(), lr=0.01) for name in ("a", "b")},
        step={name: step_of(name) for name in ("a", "b")},
    )
    with pytest.raises(FloatingPointError, match=r"train/b_loss.*'b\.0\.weight'"):
        run()


def test_iterations_are_named_with_several_microbatches_too(tmp_path):
    _, run = train(tmp_path / "run", Spoil("loss", 8), train_data=make_data(48), accumulate=2)
    with pytest.raises(FloatingPointError, match="in iteration 8 "):
        run()


def test_a_step_without_a_loss_and_a_bad_validation_do_not_end_the_run(tmp_path):
    def step(run, batch):
        if run.phase != "train":
            return torch.tensor(NAN)
        return None if run.progress.iter % 2 else run.model(batch[0]).square().mean()

    _, run = train(tmp_path / "run", step=step, val_data=make_data(4), max_epochs=4)
    assert run().status == "completed"


def test_masks_of_minus_infinity_are_not_damage(tmp_path):
    model = make_model()
    model.register_buffer("mask", torch.full((2, 2), -float("inf")))
    model.register_parameter("fixed", torch.nn.Parameter(torch.tensor(NAN), requires_grad=False))
    model.register_parameter("empty", torch.nn.Parameter(torch.empty(0)))
    _, run = train(tmp_path / "run", model=model, max_epochs=2)
    assert run().status == "completed"


def test_a_failed_run_may_save_what_it_failed_with(tmp_path):
    checkpoint = {"checkpoint": SaveCheckpoint(on_exception=True), "console": None}
    _, run = train(tmp_path / "run", Spoil("loss", 5), default_hooks=checkpoint)
    with pytest.raises(FloatingPointError):
        run()
    assert list((tmp_path / "run").glob("exception_iter_*.pth"))


def test_the_interval_can_be_chosen(tmp_path):
    trainer, run = train(
        tmp_path / "run",
        Spoil("loss", 5),
        default_hooks={
            "nan": RequireFiniteLoss(every=2),
            "checkpoint": None,
            "console": None,
        },
        train_data=make_data(400),
    )
    with pytest.raises(FloatingPointError, match="in iteration 5 "):
        run()
    assert trainer.run.progress.iter == 6  # The first check after the bad iteration.
