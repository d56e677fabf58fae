"""One update out of several microbatches, and microbatches that hooks replace."""

from functools import partial

import numpy as np
import pytest
import torch
from tests.tiny import (
    Negate,
    assert_same_bits,
    make_data,
    make_model,
    make_trainer,
    negated,
    record,
    weights,
)
from torch import nn
from torch.nn import functional

from hookloop.errors import ModelError
from hookloop.update.update import Update

IGNORED = -100
CUTS = [[20], [8, 8, 4], [4, 8, 8], [1, 19], [7, 6, 5, 2]]


def samples(count=20):
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(count, 4, generator=generator)
    return inputs, inputs.sum(1, keepdim=True) + torch.randn(count, 1, generator=generator)


def tokens():
    """Four sequences of which ever fewer tokens count; the last has none."""
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(4, 6, 4, generator=generator)
    targets = torch.randint(0, 3, (4, 6), generator=generator)
    for row, valid in enumerate((6, 3, 1, 0)):
        targets[row, valid:] = IGNORED
    return inputs, targets


def cut(parts, sizes):
    return list(zip(*(part.split(sizes) for part in parts), strict=True))


def classifier():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


def close(one, other):
    theirs = weights(other)
    return all(
        torch.allclose(value, theirs[name], rtol=1e-5, atol=1e-7)
        for name, value in weights(one).items()
    )


def train(model, batches, **options):
    parts = {"train_data": batches, "accumulate": len(batches), "max_epochs": 1} | options
    trainer = make_trainer(model=model, **parts)
    trainer.train()
    return trainer


def train_on_tokens(batches, weigh, model=None, **options):
    """An update with the mean over all tokens that count."""
    model = model or classifier()

    def step(run, batch):
        inputs, targets = batch
        loss = functional.cross_entropy(run.model(inputs).transpose(1, 2), targets)
        return {"loss": loss, "weight": weigh((targets != IGNORED).sum())}

    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    return train(model, batches, step=step, optimizer=optimizer, **options)


@pytest.mark.parametrize("sizes", CUTS)
def test_an_update_is_that_of_the_whole_batch_however_it_is_cut(sizes):
    whole = train(make_model(), [samples()]).run
    parts = train(make_model(), cut(samples(), sizes)).run
    assert close(parts.model, whole.model)
    assert parts.metrics.latest("train/loss") == pytest.approx(whole.metrics.latest("train/loss"))
    assert parts.metrics.mean("train/loss") == pytest.approx(whole.metrics.mean("train/loss"))
    assert parts.loss.item() == pytest.approx(whole.loss.item())


@pytest.mark.parametrize(
    "loss", [nn.MSELoss(reduction="sum"), partial(functional.mse_loss, reduction="sum")]
)
def test_a_loss_that_adds_up_is_added_up(loss):
    options = {"loss": loss, "clip_norm": 1.0}
    whole = train(make_model(), [samples()], **options).run
    parts = train(make_model(), cut(samples(), [8, 8, 4]), **options).run
    assert close(parts.model, whole.model)
    for name in ("train/loss", "train/grad_norm"):
        assert parts.metrics.latest(name) == pytest.approx(whole.metrics.latest(name))


@pytest.mark.parametrize("options", [{"clip_norm": 0.01}, {"precision": "fp16", "device": "cpu"}])
def test_clipping_and_scaling_see_the_gradients_of_the_whole_batch(options):
    seen = []

    def gradients(sizes):
        hook, _ = record(
            ["before_update"],
            lambda run: seen.append([p.grad.clone() for p in run.model.parameters()]),
        )
        return train(make_model(), cut(samples(), sizes), hooks=[hook], **options).run.model

    one, other = gradients([20]), gradients([8, 8, 4])
    assert all(torch.allclose(*pair, rtol=0.02) for pair in zip(*seen, strict=True))
    assert options.get("precision") or close(one, other)


@pytest.mark.parametrize("weigh", [int, float, torch.Tensor.clone, lambda n: n.reshape(1)])
@pytest.mark.parametrize("sizes", [[1, 1, 1, 1], [1, 2, 1], [2, 2], [3, 1]])
def test_a_step_weighs_its_microbatches(weigh, sizes):
    whole = train_on_tokens([tokens()], int).run
    parts = train_on_tokens(cut(tokens(), sizes), weigh).run
    assert close(parts.model, whole.model)
    assert parts.metrics.latest("train/loss") == pytest.approx(whole.metrics.latest("train/loss"))
    assert "train/weight" not in parts.metrics


@pytest.mark.parametrize("weigh", [int, torch.Tensor.clone])
def test_a_microbatch_without_weight_may_come_first(weigh):
    batches = cut(tokens(), [1, 1, 1, 1])
    whole = train_on_tokens([tokens()], int).run
    assert close(train_on_tokens(batches[::-1], weigh).run.model, whole.model)


@pytest.mark.parametrize("weigh", [int, torch.Tensor.clone])
def test_an_update_without_any_weight_does_no_harm(weigh):
    inputs, targets = tokens()
    nothing = [(inputs[3:], targets[3:])] * 2
    model = classifier()
    run = train_on_tokens(nothing, weigh, model).run
    assert_same_bits(model, classifier())
    assert run.metrics.latest("train/loss") == 0


@pytest.mark.parametrize("weigh", [int, torch.Tensor.clone])
def test_the_loss_of_an_evaluation_is_weighted_as_in_training(weigh):
    batches = cut(tokens(), [1, 1, 1, 1])
    whole = train_on_tokens([tokens()], int, val_data=[tokens()]).run.metrics.latest("val/loss")
    parts = train_on_tokens([tokens()], weigh, val_data=batches).run.metrics.latest("val/loss")
    assert parts == pytest.approx(whole)


def test_other_numbers_of_a_step_are_weighted_alike():
    def step(run, batch):
        inputs, targets = batch
        output = run.model(inputs)
        return {
            "loss": functional.mse_loss(output, targets),
            "offset": (output - targets).mean(),
            "biggest": 1.0,
            "size": np.int64(len(inputs)),
            "share": np.float32(0.5),
        }

    def offset(sizes):
        run = train(make_model(), cut(samples(), sizes), step=step).run
        assert run.metrics.latest("train/biggest") == 1.0
        assert run.metrics.latest("train/share") == 0.5
        size = sum(size * size for size in sizes) / sum(sizes)
        assert run.metrics.latest("train/size") == pytest.approx(size)
        return run.metrics.latest("train/offset")

    assert offset([8, 8, 4]) == pytest.approx(offset([20]))


def test_every_update_has_its_own_weights():
    def updated(sizes):
        model = nn.ModuleDict({"one": nn.Linear(4, 1), "two": nn.Linear(4, 1)})
        nn.init.constant_(model["one"].weight, 0.1)
        nn.init.constant_(model["two"].weight, 0.2)
        for part in model.values():
            nn.init.zeros_(part.bias)

        def plain(run, batch):
            return functional.mse_loss(run.model["one"](batch[0]), batch[1])

        def weighted(run, batch):
            losses = (run.model["two"](batch[0]) - batch[1]).square()
            counted = batch[1] > 0
            loss = (losses * counted).sum() / counted.sum()
            return {"loss": loss, "weight": counted.sum()}

        optimizers = {
            name: torch.optim.SGD(part.parameters(), lr=0.1) for name, part in model.items()
        }
        steps = {"one": plain, "two": weighted}
        train(model, cut(samples(), sizes), step=steps, optimizer=optimizers)
        return model

    assert close(updated([8, 8, 4]), updated([20]))


def test_a_microbatch_that_the_step_passes_over_counts_for_nothing():
    inputs, targets = samples()
    batches = [(inputs[:8], targets[:8]), ("damaged", None), (inputs[8:12], targets[8:12])]

    def step(run, batch):
        if isinstance(batch[0], str):
            return None
        return functional.mse_loss(run.model(batch[0]), batch[1])

    run = train(make_model(), batches, step=step).run
    assert close(run.model, train(make_model(), [(inputs[:12], targets[:12])]).run.model)


def test_no_update_is_made_when_the_step_passes_over_all():
    hook, calls = record(["after_update"], lambda run: None)
    model = make_model()
    train(model, cut(samples(), [10, 10]), step=lambda run, batch: run.skip_update(), hooks=[hook])
    assert calls == []
    assert_same_bits(model, make_model())


def test_weights_for_some_microbatches_only_are_rejected():
    def step(run, batch):
        loss = functional.mse_loss(run.model(batch[0]), batch[1])
        return loss if len(batch[0]) == 4 else {"loss": loss, "weight": 3}

    with pytest.raises(ModelError, match="for some microbatches"):
        train(make_model(), cut(samples(), [8, 8, 4]), step=step)


@pytest.mark.parametrize("kind", [np.int64, np.float32])
def test_a_weight_may_be_a_number_of_numpy(kind):
    def step(run, batch):
        loss = functional.mse_loss(run.model(batch[0]), batch[1])
        return {"loss": loss, "weight": kind(len(batch[0]))}

    whole = train(make_model(), [samples()]).run
    parts = train(make_model(), cut(samples(), [8, 8, 4]), step=step).run
    assert close(parts.model, whole.model)


@pytest.mark.parametrize("weight", [-1, float("nan"), float("inf"), "8", torch.ones(2), None, True])
@pytest.mark.parametrize("sizes", [[20], [10, 10]])
def test_a_weight_that_is_not_one_is_rejected(weight, sizes):
    def step(run, batch):
        return {"loss": functional.mse_loss(run.model(batch[0]), batch[1]), "weight": weight}

    with pytest.raises(ModelError, match="'weight'"):
        train(make_model(), cut(samples(), sizes), step=step)


def test_a_parameter_of_two_optimizers_is_corrected_once():
    def updated(sizes):
        model = make_model()
        shared = {name: torch.optim.SGD(model.parameters(), lr=0.05) for name in ("one", "two")}

        def step(run, batch):
            loss = functional.mse_loss(run.model(batch[0]), batch[1])
            return {"loss": loss, "weight": len(batch[0])}

        return train(model, cut(samples(), sizes), step=step, optimizer=shared).run.model

    assert close(updated([8, 8, 4]), updated([20]))


def test_an_update_of_ones_own_records_the_whole_batch():
    class Own(Update):
        recorded = ()

        def record(self, run, loss):
            super().record(run, loss)
            self.recorded = (*self.recorded, loss.item())

    def recorded(sizes):
        model = make_model()
        update = Own(
            "",
            lambda run: run.model(run.batch[0]),
            lambda run: functional.mse_loss(run.output, run.batch[1]),
            [torch.optim.SGD(model.parameters(), lr=0.05)],
        )
        train(model, cut(samples(), sizes), step=update, optimizer=update.optimizers[0])
        return update.recorded

    assert recorded([8, 8, 4]) == pytest.approx(recorded([20]))


# --- batches that hooks replace ----------------------------------------------------------------


@pytest.mark.parametrize("accumulate", [1, 3])
def test_a_hook_replaces_each_microbatch_in_every_phase(accumulate, tmp_path):
    data = {"train_data": make_data(), "val_data": make_data(8), "data.test": make_data(8)}
    options = {"accumulate": accumulate, "max_epochs": 2}
    trainer = make_trainer(
        hooks=[Negate("before_forward")], run_dir=tmp_path / "hook", **data, **options
    )
    trainer.train()
    expected = make_trainer(**{name: negated(one) for name, one in data.items()}, **options)
    expected.train()
    assert_same_bits(trainer.run.model, expected.run.model)
    assert trainer.run.metrics.latest("val/loss") == expected.run.metrics.latest("val/loss")
    assert trainer.test() == expected.test()
