"""One update: how output and loss are computed, and which optimizers step."""

import pytest
import torch
from tests.tiny import assert_same_bits, make_data, make_model, make_trainer, record
from torch import nn
from torch.nn import functional

from hookloop.engine.hook import Hook
from hookloop.engine.outputs import output_of, targets_of
from hookloop.engine.run import Run
from hookloop.errors import ModelError


def test_hooks_may_replace_output_and_loss(tmp_path):
    class Halve(Hook):
        def after_forward(self, run: Run) -> None:
            run.output = run.output * 0  # type: ignore[operator]

        def after_loss(self, run: Run) -> None:
            assert run.loss is not None
            run.loss = run.loss * 2

    trainer = make_trainer(hooks=[Halve()], max_iters=1, run_dir=tmp_path)
    trainer.train()
    targets = next(iter(make_data()))[1]
    assert trainer.run.metrics.latest("train/loss") == pytest.approx(2 * (targets**2).mean().item())


def test_named_steps_update_their_own_optimizers_one_after_the_other():
    model = torch.nn.ModuleDict({"a": torch.nn.Linear(4, 1), "b": torch.nn.Linear(4, 1)})
    optimizers = {name: torch.optim.SGD(part.parameters(), lr=0.1) for name, part in model.items()}
    order = []

    def step_of(name):
        def step(run, batch):
            order.append(name)
            if name == "b" and run.progress.iter == 1:
                return None
            return ((model[name](batch[0]) - batch[1]) ** 2).mean()

        return step

    before = {name: value.clone() for name, value in model.state_dict().items()}
    trainer = make_trainer(
        model=model, optimizer=optimizers, step={n: step_of(n) for n in optimizers}, max_iters=2
    )
    trainer.train()
    assert order == ["a", "b", "a", "b"]
    assert all(not torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert {"train/a_loss", "train/b_loss"} <= set(trainer.run.metrics.names())
    assert len(trainer.run.metrics.series("train/b_loss").recent) == 1  # None skipped an update


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_lower_precision_trains(precision):
    trainer = make_trainer(precision=precision, max_epochs=30)
    trainer.train()
    losses = trainer.run.metrics.series("train/loss").recent
    assert float(losses[-1]) < float(losses[0]) / 2


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda out, y: (out - y) ** 2, "shape (4, 1)"),
        (lambda out, y: 0.5, "float"),
        (lambda out, y: out.detach().mean(), "no trainable parameter"),
    ],
)
def test_a_loss_that_cannot_be_trained_on_is_rejected_at_the_first_iteration(loss, message):
    trainer = make_trainer(loss=loss)
    with pytest.raises(ModelError) as error:
        trainer.train()
    assert message in str(error.value)
    assert trainer.run.progress.iter == 0


class Both(nn.Module):
    """Returns its output and its features."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, inputs):
        features = self.linear(inputs)
        return features.sum(1, keepdim=True), features


def notes_of(work):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - torch's own, of any kind
        work()
    return " ".join(caught.value.__notes__)


def test_a_shape_error_names_phase_batch_and_shapes():
    wrong = [*make_data(8), (torch.ones(4, 3), torch.ones(4, 1))]
    trainer = make_trainer(train_data=wrong)
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied") as caught:
        trainer.train()
    assert caught.value.__notes__[:2] == [
        "in training, iteration 3: the batch is (float32[4, 3], float32[4, 1])",
        "in model.0 (Linear(in_features=4, out_features=8, bias=True))",
    ]


def test_a_model_that_returns_a_tuple_is_named_where_the_loss_fails():
    notes = notes_of(make_trainer(model=Both()).train)
    assert "in training, iteration 1: the batch is [float32[4, 4], float32[4, 1]]" in notes
    assert "the output is (float32[4, 1], float32[4, 2]). The model returned a tuple" in notes
    assert "such as output[0], in loss= and metrics=, or write step=" in notes


def test_errors_of_our_own_stay_as_they_are():
    with pytest.raises(ModelError) as caught:
        make_trainer(step=lambda run, batch: {"los": run.model(batch[0]).mean()}).train()
    assert not hasattr(caught.value, "__notes__")


# --- where the loss is found ---------------------------------------------------------------------


class Holds:
    """What a model of another library returns: an object with its loss and its output."""

    def __init__(self, loss, logits):
        self.loss = loss
        self.logits = logits


def mse(run, batch):
    return functional.mse_loss(run.model(batch[0]), batch[1])


RETURNED = {
    "the loss": mse,
    "a mapping": lambda run, batch: {"loss": mse(run, batch), "other": 1.0},
    "an object": lambda run, batch: Holds(mse(run, batch), None),
    "a weight beside it": lambda run, batch: {"loss": mse(run, batch), "weight": len(batch[0])},
}


@pytest.mark.parametrize("step", RETURNED.values(), ids=RETURNED)
def test_a_step_may_return_its_loss_in_several_forms(step):
    expected = make_trainer(max_epochs=2)
    expected.train()
    trainer = make_trainer(step=step, max_epochs=2)
    trainer.train()
    assert_same_bits(trainer.run.model, expected.run.model)
    assert trainer.run.metrics.latest("train/loss") == expected.run.metrics.latest("train/loss")


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda loss: {"los": loss, "acc": 1}, "No 'loss' among what was returned: los, acc"),
        (lambda loss: {}, "No 'loss' among what was returned: nothing"),
        (lambda loss: (loss,), "which part is the loss"),
        (lambda loss: Holds(None, loss), "Holds was returned, which has no loss"),
    ],
)
def test_a_step_that_returns_no_loss_is_rejected(returned, message):
    with pytest.raises(ModelError, match=message):
        make_trainer(step=lambda run, batch: returned(mse(run, batch))).train()


def test_in_an_evaluation_a_step_need_not_return_a_loss(tmp_path):
    def step(run, batch):
        return mse(run, batch) if run.phase == "train" else {"output": run.model(batch[0])}

    error = {"error": lambda output, targets: (output - targets).abs().mean()}
    trainer = make_trainer(step=step, val_data=make_data(8), metrics=error)
    assert set(trainer.validate()) == {"val/error"}


def test_metrics_compare_the_output_with_the_targets_of_a_pair_or_with_the_batch():
    by_loss, by_step = make_trainer().run, make_trainer(step=lambda run, batch: None).run

    def targets(run, batch):
        run.batch = batch
        return targets_of(run)

    for whole in ({"inputs": 1}, (1, 2, 3)):
        assert targets(by_loss, whole) is whole and targets(by_step, whole) is whole
    assert targets(by_loss, (1, 2)) == targets(by_step, [1, 2]) == 2
    mapping = {"input": 1, "target": 2}
    # A step gets the whole mapping, and so do its metrics.
    assert targets(by_loss, mapping) == 2 and targets(by_step, mapping) is mapping
    assert output_of({"output": 5, "loss": 1}) == 5
    assert output_of({"loss": 1}) == {"loss": 1} and output_of(7) == 7


# --- several optimizers --------------------------------------------------------------------------


def two_parts():
    return nn.ModuleDict({"encoder": make_model(1), "critic": make_model(2)})


def encoder_step(run, batch):
    return functional.mse_loss(run.model["encoder"](batch[0]), batch[1])


def critic_step(run, batch):
    with torch.no_grad():
        guess = run.model["encoder"](batch[0])
    return functional.l1_loss(run.model["critic"](batch[0]), guess)


STEPS = {"encoder": encoder_step, "critic": critic_step}


def optimizers_of(model):
    return {
        "encoder": torch.optim.AdamW(model["encoder"].parameters(), lr=0.01),
        "critic": torch.optim.SGD(model["critic"].parameters(), lr=0.1, momentum=0.9),
    }


@pytest.mark.parametrize("accumulate", [1, 3])
def test_several_updates_equal_the_loop_that_makes_one_after_the_other(accumulate, tmp_path):
    model, by_hand = two_parts(), two_parts()
    hook, calls = record(["before_update", "after_update"], lambda run: run.progress.iter)
    make_trainer(
        model=model,
        step=STEPS,
        optimizer=optimizers_of(model),
        train_data=make_data(24),
        accumulate=accumulate,
        max_epochs=2,
        hooks=[hook],
        run_dir=tmp_path,
    ).train()
    optimizers = optimizers_of(by_hand)

    class ByHand:  # All of a run that the steps look at.
        model = by_hand

    batches = list(make_data(24)) * 2
    for start in range(0, len(batches), accumulate):
        for name, step in STEPS.items():
            optimizers[name].zero_grad()
            for batch in batches[start : start + accumulate]:
                loss = step(ByHand, batch)
                (loss / accumulate if accumulate > 1 else loss).backward()
            optimizers[name].step()
    assert_same_bits(model, by_hand)
    assert len(calls) == 2 * 2 * len(batches) / accumulate


def test_a_step_of_its_own_for_one_optimizer_of_two_leaves_the_other_alone():
    model = two_parts()
    before = two_parts()
    trainer = make_trainer(
        model=model, step={"critic": critic_step}, optimizer=optimizers_of(model), max_epochs=2
    )
    trainer.train()
    assert_same_bits(model["encoder"], before["encoder"])
    assert not torch.equal(model["critic"][0].weight, before["critic"][0].weight)
    assert "train/critic_loss" in trainer.run.metrics
    assert "train/encoder_loss" not in trainer.run.metrics


# --- lower precision -----------------------------------------------------------------------------


@pytest.mark.parametrize("accumulate", [1, 2])
def test_bf16_computes_output_and_loss_in_it_and_keeps_the_weights_in_fp32(accumulate, tmp_path):
    hook, calls = record(["after_forward"], lambda run: (run.phase, run.output.dtype))
    model, by_hand = make_model(), make_model()
    data = {"train_data": make_data(16), "val_data": make_data(8)}
    make_trainer(
        model=model, precision="bf16", device="cpu", accumulate=accumulate, hooks=[hook],
        run_dir=tmp_path, **data,
    ).train()  # fmt: skip
    assert {note for _, note in calls} == {("train", torch.bfloat16), ("val", torch.bfloat16)}
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}

    optimizer = torch.optim.SGD(by_hand.parameters(), lr=0.05)
    batches = list(make_data(16))
    for start in range(0, len(batches), accumulate):
        optimizer.zero_grad()
        for inputs, targets in batches[start : start + accumulate]:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = functional.mse_loss(by_hand(inputs), targets)
            (loss / accumulate if accumulate > 1 else loss).backward()
        optimizer.step()
    assert_same_bits(model, by_hand)


def test_in_full_precision_the_model_computes_in_fp32(tmp_path):
    hook, calls = record(["after_forward"], lambda run: run.output.dtype)
    make_trainer(hooks=[hook], run_dir=tmp_path).train()
    assert {note for _, note in calls} == {torch.float32}
