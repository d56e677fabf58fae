import logging

import pytest
import torch
from tests.tiny import assert_same_bits, make_data, make_model, make_trainer, record

from hookloop import Hook
from hookloop.errors import HookError
from hookloop.hooks import AverageWeights, RecomputeBatchNorm, SaveCheckpoint


def make_normed(seed=0, dropout=0.0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 8),
        torch.nn.BatchNorm1d(8, momentum=0.3),
        torch.nn.Dropout(dropout),
        torch.nn.Linear(8, 1),
    )


def statistics(model):
    return model[1].running_mean.clone(), model[1].running_var.clone()


def direct(model, batches):
    """Return the statistics of all activations together, computed at once."""
    with torch.no_grad():
        seen = torch.cat([model[0](inputs) for inputs, _ in batches]).double()
    return seen.mean(0).float(), seen.var(0).float()


def test_statistics_are_exactly_those_of_the_samples(tmp_path):
    model, data = make_normed(), make_data(14)
    make_trainer(
        model=model, train_data=data, hooks=[RecomputeBatchNorm(samples=1000)], run_dir=tmp_path
    ).train()
    mean, variance = direct(model, data)
    assert torch.allclose(model[1].running_mean, mean, atol=1e-7)
    assert torch.allclose(model[1].running_var, variance, rtol=1e-6)
    # Recomputing must not count as training.
    assert model[1].momentum == 0.3
    assert model[1].num_batches_tracked.item() == 4


def test_only_the_most_recent_samples_are_used(tmp_path):
    model, data = make_normed(), make_data(12)
    make_trainer(
        model=model, train_data=data, hooks=[RecomputeBatchNorm(samples=5)], run_dir=tmp_path
    ).train()
    # Batches of 4 are kept whole, so at least 5 samples are the last two of the three batches.
    mean, variance = direct(model, list(data)[1:])
    assert torch.allclose(model[1].running_mean, mean, atol=1e-7)
    assert torch.allclose(model[1].running_var, variance, rtol=1e-6)


def test_images_are_normed_by_channel(tmp_path):
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 3, 2), torch.nn.BatchNorm2d(3), torch.nn.Flatten()
    )
    images = torch.randn(6, 1, 4, 4)
    make_trainer(
        model=model,
        train_data=[(images[:4], torch.zeros(4, 27)), (images[4:], torch.zeros(2, 27))],
        hooks=[RecomputeBatchNorm()],
        run_dir=tmp_path,
    ).train()
    with torch.no_grad():
        seen = model[0](images).double()
    assert torch.allclose(model[1].running_var, seen.var((0, 2, 3)).float(), rtol=1e-5)


def test_the_training_and_its_random_numbers_stay_as_they_are(tmp_path):
    def train(hooks, run_dir):
        model = make_normed(dropout=0.5)
        make_trainer(
            model=model, hooks=hooks, max_epochs=3, run_dir=run_dir, val_data=make_data(4), seed=1
        ).train()
        return model

    plain = train([], tmp_path / "a")
    recomputed = train([RecomputeBatchNorm()], tmp_path / "b")
    for name, parameter in plain.named_parameters():
        assert torch.equal(parameter, dict(recomputed.named_parameters())[name])
    assert not torch.equal(plain[1].running_var, recomputed[1].running_var)


def test_frozen_layers_keep_their_statistics(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), make_normed())
    # As users freeze batch norm: train() has no effect on it.
    model[1].train = lambda mode=True: model[1]
    model[1].training = False
    before = statistics(model)
    make_trainer(model=model, hooks=[RecomputeBatchNorm()], run_dir=tmp_path).train()
    assert torch.equal(model[1].running_mean, before[0])


def test_averaged_weights_can_have_statistics_of_their_own(tmp_path):
    model, data = make_normed(), make_data(12)
    seen, calls = record(
        ["before_val_epoch"], lambda run: (statistics(run.model), direct(run.model, data))
    )
    make_trainer(
        model=model,
        train_data=data,
        hooks=[AverageWeights("stochastic"), RecomputeBatchNorm(at="validation"), seen],
        val_data=make_data(4),
        run_dir=tmp_path,
    ).train()
    used, expected = calls[0][1]
    assert torch.allclose(used[0], expected[0], atol=1e-7)
    assert torch.allclose(used[1], expected[1], rtol=1e-6)


def test_a_model_without_batch_norm_only_gets_a_warning(tmp_path, caplog):
    plain, watched = make_model(), make_model()
    make_trainer(model=plain).train()
    with caplog.at_level(logging.WARNING):
        make_trainer(model=watched, hooks=[RecomputeBatchNorm()], run_dir=tmp_path).train()
    assert "no batch norm" in caplog.text
    assert_same_bits(plain, watched)


def test_nothing_is_left_on_the_model(tmp_path):
    model = make_normed()
    make_trainer(model=model, hooks=[RecomputeBatchNorm()], run_dir=tmp_path).train()
    assert not any(module._forward_pre_hooks for module in model.modules())


@pytest.mark.parametrize("arguments", [{"samples": 0}, {"at": "noon"}])
def test_wrong_arguments_are_rejected(arguments):
    with pytest.raises(HookError):
        RecomputeBatchNorm(**arguments)


# --- a resume ----------------------------------------------------------------------------------


class CutError(Exception):
    pass


class Numbers(Hook):
    """Keeps the loss of each validation, and ends the run at the n-th firing of a point."""

    priority = "HIGHEST"

    def __init__(self, point=None, count=0):
        self.numbers = {}
        self.count = count
        if point is not None:
            setattr(self, point, self.cut)

    def cut(self, run, *_):
        self.count -= 1
        if self.count == 0:
            raise CutError

    def after_val_epoch(self, run, metrics):
        self.numbers[run.progress.iter] = metrics["loss"].hex()  # All bits, not a rounded number.


# Before and after each step of an epoch's end, where the kept inputs matter.
MOMENTS = [
    ("before_train_iter", 6),
    ("after_train_epoch", 2),
    ("before_save_checkpoint", 2),
    ("before_val", 2),
    ("after_val_iter", 3),
    ("after_val", 1),
    ("before_epoch", 3),
]


def train_normed(run_dir, at, *, numbers, save, val_every, resume=None, averages=False, **data):
    model = make_normed(dropout=0.3)
    trainer = make_trainer(
        model=model,
        train_data=make_data(14, shuffle=True, **data),
        val_data=make_data(8),
        val_every=val_every,
        max_epochs=3,
        seed=1,
        hooks=[
            *([AverageWeights("stochastic")] if averages else []),
            RecomputeBatchNorm(samples=9, at=at),
            SaveCheckpoint(every=save, keep=None),
            numbers,
        ],
        run_dir=run_dir,
        resume=resume,
    )
    trainer.train()
    return model


@pytest.mark.slow
@pytest.mark.parametrize(
    ("at", "save", "val_every", "averages", "workers"),
    [
        ("epoch", "1 epoch", "1 epoch", False, 0),
        ("epoch", 2, "1 epoch", False, 0),
        ("validation", "1 epoch", "1 epoch", True, 0),
        ("validation", 2, 3, False, 0),
        ("validation", 2, 3, True, 0),
        pytest.param("epoch", 2, 3, False, 2, marks=pytest.mark.slow),
        pytest.param("validation", 2, "1 epoch", True, 2, marks=pytest.mark.long),
    ],
)
def test_a_resumed_run_records_the_same_numbers(at, save, val_every, averages, workers, tmp_path):
    options = {"save": save, "val_every": val_every, "averages": averages, "num_workers": workers}
    whole = Numbers()
    expected = train_normed(tmp_path / "whole", at, numbers=whole, **options)
    for number, (point, count) in enumerate(MOMENTS):
        run_dir = tmp_path / str(number)
        first, second = Numbers(point, count), Numbers()
        try:  # With some options a point does not fire that often, and the run completes.
            train_normed(run_dir, at, numbers=first, **options)
        except CutError:
            model = train_normed(run_dir, at, numbers=second, resume="auto", **options)
            assert_same_bits(model, expected)
        recorded = first.numbers | second.numbers
        assert recorded == whole.numbers, (point, count)
        assert first.numbers.items() <= whole.numbers.items()


def test_a_model_that_came_in_evaluation_mode_is_recomputed_at_a_resume_too(tmp_path):
    def train(run_dir, numbers, resume=None):
        return make_trainer(
            model=make_normed().eval(),
            val_data=make_data(8),
            max_epochs=2,
            seed=1,
            hooks=[RecomputeBatchNorm(at="validation"), SaveCheckpoint(), numbers],
            run_dir=run_dir,
            resume=resume,
        ).train()

    whole, first, second = Numbers(), Numbers("before_val", 2), Numbers()
    train(tmp_path / "whole", whole)
    with pytest.raises(CutError):
        train(tmp_path / "cut", first)
    train(tmp_path / "cut", second, resume=True)
    assert first.numbers | second.numbers == whole.numbers


def test_the_inputs_are_in_a_checkpoint_only_while_they_are_needed(tmp_path):
    sizes = {}

    class Look(Hook):
        def before_save_checkpoint(self, run, checkpoint):
            window = checkpoint["hooks"]["recompute_batch_norm"]["window"]
            sizes[run.progress.iter] = [inputs["samples"] for inputs in window]

    make_trainer(
        model=make_normed(),
        max_epochs=2,
        hooks=[RecomputeBatchNorm(), SaveCheckpoint(), SaveCheckpoint(every=2).named("b"), Look()],
        run_dir=tmp_path,
    ).train()
    assert sizes == {2: [4, 4], 3: [], 4: [4], 6: []}  # Epochs end after iterations 3 and 6.


def test_inputs_that_no_checkpoint_can_hold_are_reported_once(tmp_path, caplog):
    class Batch:
        def __init__(self, inputs):
            self.inputs = inputs

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = make_normed()

        def forward(self, batch):
            return self.net(batch.inputs).square().mean()

    make_trainer(
        model=Net(),
        train_data=[Batch(torch.randn(4, 4)) for _ in range(6)],
        step=lambda run, batch: run.model(batch),
        hooks=[RecomputeBatchNorm(), SaveCheckpoint(every=2)],
        run_dir=tmp_path,
    ).train()
    assert caplog.text.count("so no checkpoint can hold them") == 1
