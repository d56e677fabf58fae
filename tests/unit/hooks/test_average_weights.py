import logging

import pytest
import torch
from tests.names import epoch_file
from tests.tiny import assert_same_bits, make_data, make_model, make_trainer, record, weights

from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.hooks import AverageWeights, SaveCheckpoint


class Count(torch.nn.Module):
    """A model of one weight, which `Climb` sets to 1, 2, 3, ..."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.register_buffer("seen", torch.zeros(1))
        self.register_buffer("steps", torch.zeros(1, dtype=torch.long))

    def forward(self, inputs):
        return inputs.sum(1, keepdim=True) * self.weight


class Climb(Hook):
    def after_update(self, run):
        run.model.weight.data.fill_(run.progress.iter + 1)
        run.model.seen.fill_(run.progress.iter + 1)
        run.model.steps += 1


def averages(tmp_path, iters=5, **options):
    """Return the averaged weight after each of the iterations, whose raw weights are 1, 2, ..."""
    model, hook = Count(), AverageWeights(**options)
    seen, calls = record(["before_val_epoch"], lambda run: run.model.weight.item())
    make_trainer(
        model=model,
        hooks=[hook, Climb(), seen],
        val_data=make_data(4),
        val_every=1,
        max_iters=iters,
        run_dir=tmp_path,
    ).train()
    assert model.weight.item() == iters  # The raw weights are back after the last validation.
    return [value for _, value in calls]


# The numbers were measured with MMEngine 0.10.7.
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"momentum": 0.1, "warmup": False}, [1, 1.1, 1.29, 1.561, 1.9049]),
        ({"momentum": 0.1, "interval": 2, "warmup": False}, [1, 1, 1.2, 1.2, 1.58]),
        ({"kind": "stochastic"}, [1, 1.5, 2, 2.5, 3]),
        ({"kind": "stochastic", "interval": 2}, [1, 1, 2, 2, 3]),
        ({"kind": "annealing", "momentum": 0.1, "gamma": 2}, [1, 5 / 3, 7 / 3, 3, 11 / 3]),
        ({"momentum": 0.1, "device": "cpu", "warmup": False}, [1, 1.1, 1.29, 1.561, 1.9049]),
    ],
)
def test_validations_see_the_average(options, expected, tmp_path):
    assert averages(tmp_path, **options) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("begin", "expected"),
    [(3, [1, 2, 3, 3.5, 4]), ("1 epoch", [1, 2, 3, 4, 4.5])],
)
def test_before_it_begins_the_average_is_the_weights(begin, expected, tmp_path):
    assert averages(tmp_path, kind="stochastic", begin=begin) == pytest.approx(expected)


@pytest.mark.parametrize(("buffers", "expected"), [(False, 5.0), (True, 3.0)])
def test_buffers_are_averaged_when_asked_for(buffers, expected, tmp_path):
    model = Count()
    seen, calls = record(
        ["before_val_epoch"], lambda run: (run.model.seen.item(), run.model.steps.item())
    )
    make_trainer(
        model=model,
        hooks=[AverageWeights("stochastic", buffers=buffers), Climb(), seen],
        val_data=make_data(4),
        val_every=5,
        max_iters=5,
        run_dir=tmp_path,
    ).train()
    assert calls[0][1] == (expected, 5)  # The counter is an integer, which is never averaged.
    assert model.seen.item() == 5


def test_training_never_sees_the_average(tmp_path):
    plain, averaged = make_model(), make_model()
    options = {"val_data": make_data(4), "val_every": 1, "max_epochs": 3}
    make_trainer(model=plain, **options).train()
    make_trainer(
        model=averaged, hooks=[AverageWeights(momentum=0.1)], run_dir=tmp_path, **options
    ).train()
    assert_same_bits(plain, averaged)


def test_tests_see_the_average_and_leave_the_weights(tmp_path):
    model = Count()
    seen, calls = record(["before_test_iter"], lambda run: run.model.weight.item())
    trainer = make_trainer(
        model=model,
        hooks=[AverageWeights("stochastic"), Climb(), seen],
        data={"test": make_data(4)},
        max_iters=3,
        run_dir=tmp_path,
    )
    trainer.train()
    trainer.test()
    assert calls[0][1] == 2
    assert model.weight.item() == 3


def test_a_failing_validation_leaves_the_raw_weights(tmp_path):
    class Fail(Hook):
        def after_val_iter(self, run):
            raise ZeroDivisionError

    model = Count()
    trainer = make_trainer(
        model=model,
        hooks=[AverageWeights("stochastic"), Climb(), Fail()],
        val_data=make_data(4),
        run_dir=tmp_path,
    )
    with pytest.raises(ZeroDivisionError):
        trainer.train()
    assert model.weight.item() == 3


def load(path):
    return torch.load(path, weights_only=True)


def test_a_checkpoint_holds_both_sets(tmp_path):
    make_trainer(
        model=Count(),
        hooks=[AverageWeights("stochastic"), Climb(), SaveCheckpoint("1 epoch")],
        val_data=make_data(4),
        run_dir=tmp_path,
    ).train()
    checkpoint = load(tmp_path / epoch_file(1))
    assert checkpoint["model"]["weight"].item() == 3
    assert checkpoint["averaged"]["weight"].item() == 2
    assert set(checkpoint["averaged"]) == set(checkpoint["model"])
    assert checkpoint["averaged"]["steps"].item() == 3  # Not averaged, but needed to load it.
    assert checkpoint["hooks"]["average_weights"]["averaged"]["weight"].item() == 2


def test_a_checkpoint_made_during_a_validation_does_not_see_the_swap(tmp_path):
    model, hook = Count(), AverageWeights("stochastic")
    states = []

    class Gather(Hook):
        def after_val_iter(self, run):
            checkpoint = {"model": run.model.state_dict()}
            hook.before_save_checkpoint(run, checkpoint)
            states.append({name: checkpoint[name]["weight"].item() for name in checkpoint})

    make_trainer(
        model=model,
        hooks=[hook, Climb(), Gather()],
        val_data=make_data(4),
        run_dir=tmp_path,
    ).train()
    assert states == [{"model": 3, "averaged": 2}]


def test_tied_weights_are_averaged_once_and_saved_under_both_names(tmp_path):
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one = torch.nn.Linear(4, 4, bias=False)
            self.two = torch.nn.Linear(4, 4, bias=False)
            self.two.weight = self.one.weight

        def forward(self, inputs):
            return self.two(self.one(inputs)).sum(1, keepdim=True)

    hook = AverageWeights("stochastic")
    make_trainer(model=Tied(), hooks=[hook, SaveCheckpoint()], run_dir=tmp_path).train()
    averaged = load(tmp_path / epoch_file(1))["averaged"]
    assert torch.equal(averaged["one.weight"], averaged["two.weight"])
    assert not torch.equal(
        averaged["one.weight"], load(tmp_path / epoch_file(1))["model"]["one.weight"]
    )


def test_a_half_precision_model_is_averaged_in_single_precision(tmp_path):
    model = Count().to(torch.bfloat16)
    hook = AverageWeights(momentum=0.001, warmup=False)
    make_trainer(
        model=model,
        train_data=[
            (torch.ones(2, 4, dtype=torch.bfloat16), torch.ones(2, 1, dtype=torch.bfloat16))
        ],
        hooks=[hook, Climb()],
        max_iters=3,
        run_dir=tmp_path,
    ).train()
    average = hook.state_dict()["averaged"]["weight"]
    assert average.dtype == torch.float32
    # bfloat16 has no number between 1 and 1.0078: the average would stay 1.
    assert average.item() == pytest.approx(1 + 0.001 + 0.001 * (3 - 1.001))


@pytest.mark.parametrize("kind", ["exponential", "stochastic", "annealing"])
def test_a_resumed_run_averages_to_the_same_bits(kind, tmp_path):
    def trainer(run_dir, max_epochs, **options):
        hook = AverageWeights(kind, momentum=0.1, interval=2, begin=2)
        trainer = make_trainer(
            hooks=[hook],
            default_hooks={"console": None},
            max_epochs=max_epochs,
            val_data=make_data(4),
            run_dir=run_dir,
            **options,
        )
        trainer.train()
        return hook.state_dict()

    straight = trainer(tmp_path / "a", 4)
    trainer(tmp_path / "b", 2)
    resumed = trainer(tmp_path / "b", 4, resume=True)
    assert resumed["updates"] == straight["updates"]
    for name, average in straight["averaged"].items():
        assert torch.equal(average, resumed["averaged"][name]), name


def test_a_model_that_is_given_other_memory_is_still_followed(tmp_path):
    class Move(Hook):
        def before_train_iter(self, run):
            run.model.weight.data = run.model.weight.data.clone()

    model = Count()
    hook = AverageWeights("stochastic")
    make_trainer(model=model, hooks=[hook, Climb(), Move()], max_iters=3, run_dir=tmp_path).train()
    assert hook.state_dict()["averaged"]["weight"].item() == 2


def test_what_looks_like_a_decay_gets_a_warning(caplog):
    with caplog.at_level(logging.WARNING):
        AverageWeights(momentum=0.999)
    assert "if it was meant as a decay, write 0.001" in caplog.text


def test_the_raw_weights_come_back_bit_for_bit(tmp_path):
    model = make_model()
    trainer = make_trainer(
        model=model, hooks=[AverageWeights(momentum=0.3)], val_data=make_data(4), run_dir=tmp_path
    )
    before = {}
    trainer.on("before_val", priority="HIGHEST")(lambda run: before.update(weights(run.model)))
    trainer.train()
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "exponentiel"}, "Did you mean 'exponential'"),
        ({"momentum": 0.0}, "between 0 and 1"),
        ({"interval": 0}, "at least 1"),
        ({"begin": "5 min"}, "begin counts iterations or epochs"),
    ],
)
def test_wrong_arguments_are_rejected(arguments, message):
    with pytest.raises(HookError, match=message):
        AverageWeights(**arguments)


def test_a_checkpoint_is_tested_with_its_averaged_weights(tmp_path):
    data = {"val_data": make_data(4), "data.test": make_data(4)}
    hooks = [AverageWeights(momentum=0.01), SaveCheckpoint()]
    trained = make_trainer(hooks=hooks, run_dir=tmp_path, max_epochs=3, **data)
    trained.train()
    expected = trained.test()
    hooks = [AverageWeights(momentum=0.01), SaveCheckpoint()]
    loaded = make_trainer(model=make_model(1), hooks=hooks, run_dir=tmp_path, resume=True, **data)
    assert loaded.test() == expected
    assert_same_bits(loaded.run.model, trained.run.model)


# --- the default, for short and for long trainings ---------------------------------------------


def coefficients(iterations, **options):
    """Return the share that the weights of each iteration have in the final average."""
    hook, kept, found = AverageWeights(**options), 1.0, []
    for updates in reversed(range(iterations)):
        share = hook.share(updates)
        found.append(kept * share)
        kept *= 1 - share
    return found[::-1]


@pytest.mark.parametrize("iterations", [20, 100, 1000, 100_000])
def test_the_default_forgets_the_beginning_and_averages_many(iterations):
    shares = coefficients(iterations)
    assert sum(shares) == pytest.approx(1)
    first_fifth = sum(shares[: iterations // 5])
    assert first_fifth < 1e-4
    # The number of equal shares that would average as smoothly.
    averaged = 1 / sum(share**2 for share in shares)
    assert averaged > iterations / 20


def test_without_a_warm_up_a_short_training_is_mostly_its_first_weights():
    assert coefficients(100, warmup=False)[0] > 0.97


def test_a_long_training_has_the_momentum():
    hook = AverageWeights()
    assert hook.share(45_000) == hook.share(10**6) == 0.0002
    assert coefficients(100_000)[-1] == 0.0002


def test_intervals_are_counted_in_updates():
    assert AverageWeights(interval=10).share(100) == AverageWeights().share(10)


def test_a_short_training_is_validated_with_trained_weights(tmp_path):
    inputs = torch.randn(64, 4, generator=torch.Generator().manual_seed(1))
    data = [(inputs, (inputs.sum(1) > 0).long())] * 10

    def accuracy(output, targets):
        return (output.argmax(1) == targets).float().mean()

    found = {}
    for name, hooks in {"raw": [], "averaged": [AverageWeights()]}.items():
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 2)
        trainer = make_trainer(
            model=model,
            train_data=data,
            val_data=data[:1],
            loss=torch.nn.functional.cross_entropy,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
            metrics={"accuracy": accuracy},
            max_epochs=10,
            hooks=hooks,
            run_dir=tmp_path / name,
        )
        found[name] = trainer.train().metrics["val/accuracy"]
    assert found["raw"] > 0.95
    assert found["averaged"] > found["raw"] - 0.03


def test_a_checkpoint_from_before_the_warm_up_continues_without(tmp_path):
    hook = AverageWeights(momentum=0.1)
    # Such a checkpoint has no entry "warmup".
    state = {"updates": 3, "averaged": {"weight": torch.tensor([1.0])}}
    hook.load_state_dict(state)
    assert hook.share(3) == 0.1
    again = AverageWeights(momentum=0.1)
    again.load_state_dict(AverageWeights(momentum=0.1).state_dict())
    assert again.share(3) == 9 / 13
