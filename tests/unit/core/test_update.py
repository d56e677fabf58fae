"""The short way around torch's wrappers: whoever could see the difference gets the long way."""

import warnings

import pytest
import torch
from tests.tiny import make_data, make_trainer
from torch import nn
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from hookloop.core.hook import Hook
from hookloop.core.run import Run
from hookloop.core.update import step_optimizer, zero_optimizer
from hookloop.errors import DataError, ModelError


class Stepping(torch.optim.SGD):
    """Somebody's optimizer, with a step of its own around torch's."""

    steps = 0

    def step(self, closure=None):
        self.steps += 1
        return super().step(closure)


def make(kind=torch.optim.SGD, **options):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    return model, kind(model.parameters(), lr=0.1, **options)


def backward(model):
    model(torch.ones(4, 3)).square().mean().backward()


def marks(work):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        work()
    return {event.key for event in profiler.key_averages() if "Optimizer" in event.key}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (torch.optim.SGD, {"momentum": 0.9}),
        (torch.optim.AdamW, {}),
        (torch.optim.RMSprop, {"foreach": True}),
        (torch.optim.Adam, {"fused": True}),
        (Stepping, {}),
    ],
)
def test_the_weights_have_the_same_bits_as_with_torchs_own_calls(kind, options):
    ours, theirs = make(kind, **options), make(kind, **options)
    for _ in range(5):
        for model, optimizer in (ours, theirs):
            short = optimizer is ours[1]
            zero_optimizer(optimizer) if short else optimizer.zero_grad()
            backward(model)
            step_optimizer(optimizer) if short else optimizer.step()
    for one, other in zip(ours[0].parameters(), theirs[0].parameters(), strict=True):
        assert torch.equal(one, other)


def test_an_overridden_step_is_called():
    model, optimizer = make(Stepping)
    backward(model)
    step_optimizer(optimizer)
    assert optimizer.steps == 1


def test_a_step_replaced_on_the_instance_is_called():
    model, optimizer = make()
    backward(model)
    called = []
    optimizer.step = lambda: called.append(1)
    step_optimizer(optimizer)
    assert called == [1]


def test_a_zero_grad_replaced_on_the_instance_is_called():
    _, optimizer = make()
    called = []
    optimizer.zero_grad = lambda: called.append(1)
    zero_optimizer(optimizer)
    assert called == [1]


@pytest.mark.parametrize("everywhere", [False, True])
def test_torchs_hooks_around_the_step_are_called(everywhere):
    model, optimizer = make()
    backward(model)
    called = []
    before, after = (
        (register_optimizer_step_pre_hook, register_optimizer_step_post_hook)
        if everywhere
        else (optimizer.register_step_pre_hook, optimizer.register_step_post_hook)
    )
    handles = [
        before(lambda *_: called.append("before")),
        after(lambda *_: called.append("after")),
    ]
    step_optimizer(optimizer)
    for handle in handles:
        handle.remove()
    step_optimizer(optimizer)
    assert called == ["before", "after"]


def test_a_profiler_finds_torchs_marks():
    model, optimizer = make()
    backward(model)
    assert marks(lambda: step_optimizer(optimizer)) == {"Optimizer.step#SGD.step"}
    assert marks(lambda: zero_optimizer(optimizer)) == {"Optimizer.zero_grad#SGD.zero_grad"}


def test_a_scheduler_knows_that_the_step_came_before_its_own():
    model, optimizer = make()
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    backward(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step_optimizer(optimizer)
        schedule.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.01)


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


def test_a_model_that_returns_its_loss_needs_no_loss_function():
    class Own(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
            loss = ((self.layer(x) - y) ** 2).mean()
            return {"loss": loss, "twice": 2 * loss}

    trainer = make_trainer(model=Own(), loss=None)
    trainer.train()
    store = trainer.run.metrics
    assert store.latest("train/twice") == pytest.approx(2 * store.latest("train/loss"))


def test_named_steps_update_their_own_optimizer_in_turn():
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


def test_batches_that_do_not_fit_the_loss_are_rejected():
    with pytest.raises(DataError, match=r"train_data gives \[float32\[2, 4\], "):
        make_trainer(train_data=[[torch.ones(2, 4)] * 3]).train()


def test_a_forgotten_return_is_rejected():
    with pytest.raises(ModelError, match="loss= returned None: return the loss"):
        make_trainer(loss=lambda output, targets: None).train()

    class Silent(torch.nn.Linear):
        def forward(self, inputs, targets):
            super().forward(inputs)

    with pytest.raises(ModelError, match="The model returned None: return the loss"):
        make_trainer(model=Silent(4, 1), loss=None).train()


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
    assert caught.value.__notes__ == [
        "in training, iteration 3: the batch is (float32[4, 3], float32[4, 1])"
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
