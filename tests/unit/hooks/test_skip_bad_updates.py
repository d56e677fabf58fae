import copy

import pytest
import torch
from tests.ranks import on_ranks
from tests.tiny import assert_same_bits, make_data, make_model, make_trainer
from torch.utils.data import DataLoader, TensorDataset

from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop.hooks import ClipGradients, RequireFiniteLoss, SkipBadUpdates
from hookloop.testing import assert_resumes_exactly


def batches(*bad, count=6):
    """Batches of which those with these numbers hold a NaN."""
    found = [[inputs.clone(), targets] for inputs, targets in make_data(4 * count)]
    for index in bad:
        found[index][0][0, 0] = torch.nan
    return found


def sgd(model, **options):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=0.1, **options)


def adam(model, **options):
    return torch.optim.AdamW(model.parameters(), lr=0.05, **options)


OPTIMIZERS = {
    "sgd": sgd,
    "adam": adam,
    "fused sgd": lambda model: sgd(model, fused=True),
    "fused adam": lambda model: adam(model, fused=True),
}


def train(make, data, **options):
    model = make_model()
    trainer = make_trainer(model=model, optimizer=make(model), train_data=data, **options)
    trainer.train()
    return trainer


def state_of(trainer):
    return {
        number: {key: value for key, value in state.items() if key != "step"}
        for number, state in trainer.run.optimizer.state_dict()["state"].items()
    }


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("bad", [(0,), (2, 3), (0, 5)])
def test_a_bad_update_leaves_weights_and_optimizer_as_without_it(kind, bad, tmp_path):
    hook = SkipBadUpdates()
    skipping = train(OPTIMIZERS[kind], batches(*bad), hooks=[hook], run_dir=tmp_path)
    good = [batch for index, batch in enumerate(batches()) if index not in bad]
    plain = train(OPTIMIZERS[kind], good)
    assert skipping.run.progress.iter == 6
    assert_same_bits(skipping.run.model, plain.run.model)
    for number, state in state_of(plain).items():
        for key, value in state.items():
            assert torch.equal(
                torch.as_tensor(value), torch.as_tensor(state_of(skipping)[number][key])
            )
    assert skipping.run.metrics.latest("train/skipped_updates") == len(bad)
    assert not hasattr(skipping.run.optimizer, "found_inf")


@pytest.mark.parametrize("kind", ["sgd", "fused adam"])
def test_the_statistics_of_batch_norm_are_those_without_the_batch(kind):
    def trained(data, *hooks):
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1)
        )
        make_trainer(
            model=model, optimizer=OPTIMIZERS[kind](model), train_data=data, hooks=hooks
        ).train()
        return model

    good = [batch for index, batch in enumerate(batches()) if index not in (0, 3)]
    assert_same_bits(trained(batches(0, 3), SkipBadUpdates()), trained(good))


class NoReads(Hook):
    """Fails if a number of the gradients is read while an update is made."""

    priority = 0
    takes_part_in_training = True

    def before_update(self, run):
        self.was, torch.Tensor.__bool__ = torch.Tensor.__bool__, self.fail

    def after_update(self, run):
        torch.Tensor.__bool__ = self.was

    def fail(self, tensor=None):
        raise AssertionError("a tensor was read")


def test_a_fused_optimizer_skips_without_a_read(tmp_path):
    trainer = train(OPTIMIZERS["fused adam"], batches(1), hooks=[SkipBadUpdates(), NoReads()])
    assert trainer.run.metrics.latest("train/skipped_updates") == 1


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_it_gives_up_after_some_in_a_row(kind, tmp_path):
    hook = SkipBadUpdates(in_a_row=2)
    train(OPTIMIZERS[kind], batches(0, 2, 4), hooks=[hook])
    with pytest.raises(FloatingPointError, match=r"3 updates were not finite.*2 in a row"):
        train(OPTIMIZERS[kind], batches(0, 3, 4), hooks=[SkipBadUpdates(in_a_row=2)])


def test_it_gives_up_after_some_in_all():
    with pytest.raises(FloatingPointError, match="3 updates.*most=2"):
        train(sgd, batches(0, 2, 4), hooks=[SkipBadUpdates(most=2)])


def test_a_finite_gradient_of_a_loss_that_is_not_is_dropped_too(tmp_path):
    model = make_model()
    before = copy.deepcopy(model)

    def loss(output, targets):
        return torch.nn.functional.mse_loss(output, targets) + torch.inf

    data = batches(count=2)
    make_trainer(model=model, train_data=data, loss=loss, hooks=[SkipBadUpdates()]).train()
    assert_same_bits(model, before)


def test_accumulated_updates_and_clipping(tmp_path):
    hooks = [ClipGradients(0.1), SkipBadUpdates()]
    skipping = train(adam, batches(3), hooks=hooks, accumulate=2, clip_norm=5.0)
    plain = train(adam, batches()[:2] + batches()[4:], hooks=[ClipGradients(0.1)], accumulate=2)
    assert_same_bits(skipping.run.model, plain.run.model)


def test_several_optimizers_each_with_its_own_update():
    model = make_model()
    optimizers = {
        name: torch.optim.SGD(model[i].parameters(), 0.1) for name, i in (("a", 0), ("b", 2))
    }
    before = copy.deepcopy(model)

    def step_a(run, batch):
        return torch.nn.functional.mse_loss(run.model(batch[0]), batch[1])

    def step_b(run, batch):
        return step_a(run, batch) * torch.nan

    hook = SkipBadUpdates(in_a_row=1000, most=1000)
    trainer = make_trainer(
        model=model, optimizer=optimizers, step={"a": step_a, "b": step_b}, hooks=[hook]
    )
    trainer.train()
    assert torch.equal(model[2].weight, before[2].weight)
    assert not torch.equal(model[0].weight, before[0].weight)
    assert trainer.run.metrics.latest("train/skipped_updates") == 3


def test_the_scaler_of_half_precision_skips_by_itself_and_is_not_counted():
    model = make_model()
    scaled = make_trainer(model=model, precision="fp16", hooks=[SkipBadUpdates()])
    scaled.run._internals.scaler.load_state_dict(
        {**scaled.run._internals.scaler.state_dict(), "scale": 1e38}
    )
    scaled.train()
    assert "train/skipped_updates" not in scaled.run.metrics
    with pytest.raises(FloatingPointError, match="3 in a row"):
        make_trainer(
            train_data=batches(0, 1, 2), precision="fp16", hooks=[SkipBadUpdates()]
        ).train()


def test_the_default_hooks_leave_the_verdict_to_it(tmp_path):
    data = batches(4, 5)  # Two in a row at the end, which the default hook alone would not accept.
    with pytest.raises(FloatingPointError):
        train(adam, data[4:], hooks=[RequireFiniteLoss()], run_dir=tmp_path / "a")
    hooks = [SkipBadUpdates(), RequireFiniteLoss()]
    trainer = train(sgd, data, hooks=hooks, run_dir=tmp_path / "b")
    assert trainer.run.outcome.status == "completed"


@pytest.mark.parametrize("kind", ["sgd", "fused adam"])
def test_a_resume_continues_the_counts(kind):
    def make(**options):
        model = make_model()
        return make_trainer(
            model=model, optimizer=OPTIMIZERS[kind](model), train_data=batches(1, 2, 4),
            hooks=[SkipBadUpdates()], **options,
        )  # fmt: skip

    assert_resumes_exactly(make, stop_at=(2, 3))


def test_limits_below_one_are_rejected():
    with pytest.raises(HookError, match="in_a_row.*1"):
        SkipBadUpdates(in_a_row=0)


def train_on_rank(parallel):
    model = make_model()
    inputs = torch.randn(24, 4, generator=torch.Generator().manual_seed(1))
    inputs[5, 0] = torch.nan  # Of the second batch, in the part of one rank.
    data = DataLoader(TensorDataset(inputs, inputs.sum(1, keepdim=True)), batch_size=4)
    trainer = make_trainer(
        model=model, optimizer=sgd(model), train_data=data, hooks=[SkipBadUpdates()],
        parallel=parallel,
    )  # fmt: skip
    trainer.train()
    weights = trainer.run.with_model(
        lambda: [p.isfinite().all().item() for p in model.parameters()]
    )
    return trainer.run.metrics.latest("train/skipped_updates"), all(weights)


@pytest.mark.slow
@pytest.mark.parametrize("parallel", ["replicated", "sharded"])
def test_all_ranks_skip_what_one_cannot_use(parallel):
    assert on_ranks(train_on_rank, 2, parallel) == [(1, True), (1, True)]
