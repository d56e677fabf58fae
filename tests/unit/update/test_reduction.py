"""Updates that ranks make together, against one process with the same global batches."""

import pytest
import torch
from tests.ranks import each_rank, on_ranks
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from hookloop import Hook, Trainer
from hookloop.errors import ModelError
from hookloop.update.update import Update

pytestmark = pytest.mark.slow  # Ranks are processes.

SAMPLES = 46


class Net(nn.Module):
    def __init__(self, dtype=torch.float64):
        super().__init__()
        torch.manual_seed(1)
        self.first, self.second = nn.Linear(3, 5, dtype=dtype), nn.Linear(5, 2, dtype=dtype)
        self.spare = nn.Linear(3, 2, dtype=dtype)

    def forward(self, inputs):
        return self.second(torch.tanh(self.first(inputs)))

    def energy(self, inputs):
        return self.first(inputs).square().mean()


def data(count=SAMPLES, dtype=torch.float64):
    made = torch.Generator().manual_seed(2)
    inputs = torch.randn(count, 3, generator=made, dtype=dtype)
    return TensorDataset(inputs, torch.randint(0, 2, (count,), generator=made))


def mean_loss(run, batch):
    return nn.functional.cross_entropy(run.model(batch[0]), batch[1])


class Note(Hook):
    """Keeps the loss of each iteration, and other numbers, as they are recorded."""

    def __init__(self, *names):
        self.names, self.seen = ("loss", *names), []

    def after_train_iter(self, run):
        latest = run.metrics.all_latest()
        self.seen.append([float(latest.get(f"train/{name}", -1.0)) for name in self.names])


def train(step, *, batch=8, numbers=(), optimizer=None, hooks=(), dtype=torch.float64, **options):
    model = Net(dtype)
    used = [one for name, one in model.named_parameters() if "spare" not in name]
    optimizer = optimizer(model) if optimizer else torch.optim.SGD(used, lr=0.2, momentum=0.9)
    note = Note(*numbers)
    what = {"loss": step} if isinstance(step, nn.Module) else {"step": step}
    Trainer(
        model,
        train_data=DataLoader(data(dtype=dtype), batch_size=batch, shuffle=True),
        optimizer=optimizer,
        max_epochs=2,
        seed=3,
        device="cpu",
        default_hooks=False,
        hooks=[note, *(hook() for hook in hooks)],
        **what,
        **options,
    ).train()
    return {name: one.detach() for name, one in model.state_dict().items()}, note.seen


def check(size, *args, close=1e-12, **options):
    """Ranks agree bit for bit; one process on the same batches comes to the same."""
    of_ranks = on_ranks(lambda: train(*args, **options), size)
    weights, seen = of_ranks[0]
    for other, their_seen in of_ranks[1:]:
        assert all(torch.equal(weights[name], other[name]) for name in weights)
        assert seen == their_seen
    alone, alone_seen = train(*args, **options)
    for name, tensor in alone.items():
        torch.testing.assert_close(weights[name], tensor, rtol=close, atol=close, msg=name)
    return seen, alone_seen


def assert_same_numbers(seen, alone_seen, close=1e-6):
    assert len(seen) == len(alone_seen) > 0
    for ours, theirs in zip(seen, alone_seen, strict=True):
        assert ours == pytest.approx(theirs, rel=close, abs=close)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("accumulate", [1, 2, 3])
def test_uneven_parts_and_microbatches_make_the_update_of_the_global_batch(size, accumulate):
    # 46 samples in batches of 7: parts differ by one, the last batch and the last group are short.
    assert_same_numbers(*check(size, nn.CrossEntropyLoss(), batch=7, accumulate=accumulate))


@pytest.mark.parametrize("accumulate", [1, 3])
def test_sums_add_up(accumulate):
    sums = nn.CrossEntropyLoss(reduction="sum")
    seen, alone = check(3, sums, batch=7, accumulate=accumulate)
    assert_same_numbers(seen, alone)


SINGLE = 1e-6
"""The sum of weights travels in single precision, whatever the model has."""


def of_the_valid(run, batch):
    inputs, targets = batch
    valid = inputs[:, 0] > -0.3  # Some parts have none.
    losses = nn.functional.cross_entropy(run.model(inputs), targets, reduction="none")
    loss = losses[valid].mean()
    return {"loss": loss, "weight": valid.sum(), "share": loss.detach() * 2}


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("size", [2, 3])
def test_a_weight_that_a_step_returns_counts_over_all_ranks(size, accumulate):
    options = {"numbers": ["share"], "batch": 7, "accumulate": accumulate, "close": SINGLE}
    seen, alone = check(size, of_the_valid, **options)
    assert_same_numbers(seen, alone)
    assert all(share == pytest.approx(2 * loss, rel=1e-5) for loss, share in seen)


def test_other_numbers_of_a_step_are_those_of_the_global_batch():
    def step(run, batch):
        output = run.model(batch[0])
        right = (output.argmax(1) == batch[1]).float().mean()
        loss = nn.functional.cross_entropy(output, batch[1])
        return {"loss": loss, "right": right, "size": 3}

    assert_same_numbers(*check(3, step, numbers=["right", "size"], batch=7))


def test_a_step_may_call_any_method_of_the_model():
    assert_same_numbers(
        *check(3, lambda run, batch: run.model.energy(batch[0]) + mean_loss(run, batch))
    )


def test_several_updates_each_average_their_own_parameters():
    def first(run, batch):
        return run.model.first(batch[0]).square().mean()

    def second(run, batch):
        return nn.functional.cross_entropy(
            run.model.second(run.model.first(batch[0]).detach()), batch[1]
        )

    def optimizers(model):
        return {
            "first": torch.optim.SGD(model.first.parameters(), lr=0.1),
            "second": torch.optim.Adam(model.second.parameters(), lr=0.05),
        }

    # Adam divides by roots of small squares, so the last bits grow.
    numbers = ["first_loss", "second_loss"]
    updates = {"first": first, "second": second}
    seen, alone = check(3, updates, optimizer=optimizers, numbers=numbers, batch=7, close=1e-8)
    assert_same_numbers(seen, alone)
    assert all(loss > 0 for _, *losses in seen for loss in losses)


def everything(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


def test_a_step_may_leave_out_parameters_even_on_some_ranks_only():
    def step(run, batch):
        inputs, targets = batch
        loss = mean_loss(run, batch)
        if bool((targets == 1).all()):
            return loss
        zeros = (targets == 0).double()
        return loss + (run.model.spare(inputs).square().mean(1) * zeros).mean()

    assert_same_numbers(*check(3, step, optimizer=everything, batch=3))


def leave_out_spare():
    train(nn.CrossEntropyLoss(), optimizer=everything)


def test_a_loss_that_leaves_out_parameters_is_rejected_with_their_names():
    def rejected():
        with pytest.raises(
            ModelError, match=r"spare\.weight, spare\.bias.*unused_parameters"
        ) as error:
            leave_out_spare()
        return str(error.value)

    assert len(set(on_ranks(rejected, 2))) == 1


def test_unless_parallel_allows_it():
    check(2, nn.CrossEntropyLoss(), optimizer=everything, parallel={"unused_parameters": True})


def test_frozen_parameters_stay_and_can_be_thawed_later():
    class Thaw(Hook):
        changes_what_trains = True

        def before_train_epoch(self, run):
            run.model.first.requires_grad_(run.progress.epoch > 0)

    assert_same_numbers(*check(3, nn.CrossEntropyLoss(), batch=7, hooks=[Thaw]))


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_part_for_which_a_step_returns_none_is_left_out(accumulate):
    def step(run, batch):
        inputs, targets = batch
        keep = targets == 1
        if not keep.any():
            return None
        loss = nn.functional.cross_entropy(run.model(inputs[keep]), targets[keep])
        return {"loss": loss, "weight": keep.sum()}

    assert_same_numbers(*check(3, step, batch=4, accumulate=accumulate, close=SINGLE))


@pytest.mark.parametrize("logical", [{}, {"parallel": {"logical": 4}}], ids=["", "logical"])
def test_a_parameter_that_an_optimizer_gets_later_is_averaged_too(logical):
    class Grow(Hook):
        takes_part_in_training = True

        def before_train_iter(self, run):
            if run.progress.iter == 2:
                run.optimizer.add_param_group({"params": [*run.model.second.parameters()]})

    def first_only(model):
        return torch.optim.SGD(model.first.parameters(), lr=0.2, momentum=0.9)

    changes = {"optimizer": first_only, "hooks": [Grow]} | logical
    assert_same_numbers(*check(3, nn.CrossEntropyLoss(), batch=7, **changes))
    assert_same_numbers(*check(3, mean_loss, batch=7, accumulate=2, **changes))


def test_a_parameter_that_comes_within_an_update_is_rejected():
    class Grow(Hook):
        takes_part_in_training = True

        def after_forward(self, run):
            if run.progress.iter == 2:
                run.optimizer.add_param_group({"params": [*run.model.second.parameters()]})

    def first_only(model):
        return torch.optim.SGD(model.first.parameters(), lr=0.2)

    for end in each_rank(lambda: train(mean_loss, optimizer=first_only, hooks=[Grow]), 2):
        assert "in the middle of an update" in end.error


def test_a_step_that_returns_none_on_one_rank_only_fails():
    def step(run, batch):
        return mean_loss(run, batch) if run.world.is_main else None

    first, second = each_rank(lambda: train(step, batch=2), 2)
    assert "in the first 10 iterations on rank 1, so that its part of the data" in second.error
    assert first.code


def test_a_step_may_say_that_one_rank_skips():
    def step(run, batch):
        return mean_loss(run, batch) if run.world.is_main else run.skip_update()

    (_, first), (_, second) = on_ranks(lambda: train(step, batch=2), 2)
    assert first == second


def test_a_rank_may_have_no_loss_in_its_first_iteration():
    def step(run, batch):
        if run.place is not None and run.world.rank and not run.progress.iter:
            run.skip_update()
        return mean_loss(run, batch)

    (_, first), (_, second) = on_ranks(lambda: train(step, batch=4), 2)
    assert first == second


def test_an_update_that_all_ranks_skip_leaves_no_trace():
    def step(run, batch):
        return None if run.progress.iter % 3 == 1 else mean_loss(run, batch)

    seen, alone = check(3, step, batch=7)
    assert_same_numbers(seen, alone)


def test_clipping_sees_the_gradients_of_the_global_batch():
    seen, alone = check(3, nn.CrossEntropyLoss(), batch=7, clip_norm=0.05, numbers=["grad_norm"])
    assert_same_numbers(seen, alone)
    assert any(norm > 0.05 for _, norm in seen)


class Doubling(Update):
    """Has a backward of its own."""

    def backward(self, loss):
        super().backward(2 * loss)


def test_a_backward_of_ones_own_changes_gradients_and_not_what_is_recorded():
    def own(model):
        used = [one for name, one in model.named_parameters() if "spare" not in name]
        return torch.optim.SGD(used, lr=0.1)

    def run_it():
        model = Net()
        optimizer = own(model)
        update = Doubling(
            "", lambda run: run.model(run.batch[0]),
            lambda run: nn.functional.cross_entropy(run.output, run.batch[1]), [optimizer],
        )  # fmt: skip
        note = Note()
        Trainer(
            model, train_data=DataLoader(data(), batch_size=7), step=update, optimizer=optimizer,
            max_epochs=1, device="cpu", default_hooks=False, hooks=[note],
        ).train()  # fmt: skip
        return {name: one.detach() for name, one in model.state_dict().items()}, note.seen

    of_ranks, (alone, alone_seen) = on_ranks(run_it, 3), run_it()
    for weights, seen in of_ranks:
        assert_same_numbers(seen, alone_seen)
        for name, tensor in alone.items():
            torch.testing.assert_close(weights[name], tensor, rtol=1e-12, atol=1e-12)
            assert torch.equal(weights[name], of_ranks[0][0][name])


def test_with_scaled_losses_of_half_precision_the_recorded_loss_is_the_true_one():
    def run_it():
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        model = Net(torch.float32)
        used = [one for name, one in model.named_parameters() if "spare" not in name]
        optimizer, note = torch.optim.SGD(used, lr=0.1), Note()
        update = Update(
            "", lambda run: run.model(run.batch[0]),
            lambda run: nn.functional.cross_entropy(run.output, run.batch[1]), [optimizer],
            scaler=scaler,
        )  # fmt: skip
        Trainer(
            model, train_data=DataLoader(data(dtype=torch.float32), batch_size=7), step=update,
            optimizer=optimizer, max_epochs=1, device="cpu", default_hooks=False, hooks=[note],
        ).train()  # fmt: skip
        return {name: one.detach() for name, one in model.state_dict().items()}, note.seen

    of_ranks, (alone, alone_seen) = on_ranks(run_it, 3), run_it()
    for weights, seen in of_ranks:
        assert_same_numbers(seen, alone_seen, close=1e-5)
        for name, tensor in alone.items():
            torch.testing.assert_close(weights[name], tensor, rtol=1e-4, atol=1e-5)
            assert torch.equal(weights[name], of_ranks[0][0][name])


def test_a_nan_in_the_sample_of_an_empty_part_does_not_count():
    # Three samples, then two for three ranks: the last rank reads the first of them once more.
    def run_it():
        model, note = Net(), Note()
        used = [one for name, one in model.named_parameters() if "spare" not in name]

        def step(run, batch):
            loss = mean_loss(run, batch)
            return loss if run.place is None or run.place.own else loss + float("inf")

        Trainer(
            model, train_data=DataLoader(data(5), batch_size=3), step=step,
            optimizer=torch.optim.SGD(used, lr=0.1), max_epochs=1, device="cpu",
            default_hooks=False, hooks=[note],
        ).train()  # fmt: skip
        return {name: one.detach() for name, one in model.state_dict().items()}, note.seen

    of_ranks, (alone, alone_seen) = on_ranks(run_it, 3), run_it()
    for weights, seen in of_ranks:
        assert_same_numbers(seen, alone_seen)
        for name, tensor in alone.items():
            torch.testing.assert_close(weights[name], tensor, rtol=1e-12, atol=1e-12)
