"""`find_lr`: a search over learning rates that leaves no trace."""

import math
from queue import SimpleQueue

import pytest
import torch
from tests.integration.many_ranks import Plain, data, make
from tests.ranks import each_rank, on_ranks
from tests.tiny import assert_same_bits, make_classifier, make_data
from torch import nn
from torch.utils.data import DataLoader, Dataset

from hookloop import find_lr
from hookloop.errors import DataError, HookError, ModelError
from hookloop.hooks import SaveCheckpoint, StepSchedules
from hookloop.short_runs.find_lr import _Curve
from hookloop.testing import RecordCalls, tiny_trainer
from hookloop.update.objective import forward_inputs, loss_from
from hookloop.update.update import Update


class Random(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        return torch.full((4,), index / 6) + torch.rand(4) / 10, index % 3


def streams():
    generator = torch.Generator().manual_seed(1)
    return {
        "a": DataLoader(Random(), 4, shuffle=True, generator=generator),
        "b": [(torch.ones(4, 4), torch.arange(4) % 3), (torch.zeros(4, 4), torch.zeros(4).long())],
    }


def step_of_both(run, batch):
    parts = batch.values() if isinstance(batch, dict) else [batch]
    loss = nn.functional.mse_loss if isinstance(run.model, Plain) else nn.functional.cross_entropy
    return sum(loss(run.model(x), y) for x, y in parts)


def with_norm(**options):
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1)
    return tiny_trainer(
        StepSchedules(), model=model, optimizer=optimizer, schedule=schedule, **options
    )


CASES = {
    "without a seed": lambda: with_norm(seed=None),
    "with a seed": with_norm,
    "microbatches": lambda: with_norm(accumulate=2, data={"epoch_iters": 2}),
    "workers": lambda: with_norm(
        train_data=DataLoader(Random(), batch_size=4, shuffle=True, num_workers=1)
    ),
    "a generator of the loader": lambda: with_norm(
        train_data=DataLoader(Random(), 4, shuffle=True, generator=torch.Generator().manual_seed(1))
    ),
    "streams by weights": lambda: with_norm(train_data=streams(), data={"mix": {"a": 2, "b": 1}}),
    "streams side by side": lambda: with_norm(
        train_data=streams(),
        data={"mix": "zip", "epoch_iters": 3},
        step=step_of_both,
        loss=None,
        metrics=None,
    ),
    "streams in order": lambda: with_norm(train_data=streams(), data={"mix": "in order"}),
    "half precision": lambda: with_norm(precision="bf16"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_training_after_it_ends_with_the_same_bits(case):
    results = []
    for searches in (False, True):
        torch.manual_seed(8)
        trainer = CASES[case]()
        torch.manual_seed(9)
        if searches:
            find_lr(trainer, iters=7)
            trainer.train(max_epochs=1)
            find_lr(trainer, iters=2)
        trainer.train(max_epochs=2)
        results.append(trainer)
    plain, searched = results
    assert searched.run.progress.iter == plain.run.progress.iter
    assert_same_bits(searched.run.model, plain.run.model)
    assert [float(x) for x in searched.run.metrics.all_latest().values()] == [
        float(x) for x in plain.run.metrics.all_latest().values()
    ]


@pytest.mark.slow
def test_a_good_rate_is_suggested(tmp_path):
    trainer = make_classifier(run_dir=tmp_path / "run", hooks=[hook := RecordCalls()])
    search = find_lr(trainer, first=1e-4, last=1e3, iters=80)
    assert 1e-3 < search.suggestion < 20
    assert search.overrides == {"optimizer.lr": float(f"{search.suggestion:.2g}")}
    assert search.factor == pytest.approx(search.suggestion / 0.1)
    assert search.rates[0] == pytest.approx(1e-4)
    assert all(map(math.isfinite, search.losses))
    assert len(search.rates) == len(search.losses) == len(search.smoothed)
    assert not hook.calls
    assert not (tmp_path / "run").exists()
    search.save_png(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_a_single_hard_batch_does_not_end_the_search():
    search = _Curve()
    for number, loss in enumerate([*[2.0] * 50, *[0.2] * 42, 0.9, 0.9, 0.05]):
        assert search.add(10 ** (-7 + 8 * number / 99), loss)


def test_a_diverging_search_ends_early():
    trainer = tiny_trainer(
        model=nn.Linear(4, 1), loss=lambda output, targets: (output - 3).square().mean()
    )
    search = find_lr(trainer, last=1e6, iters=200)
    assert len(search.rates) < 200
    assert "diverged" in search.ended or "not finite" in search.ended


def test_a_loss_that_does_not_fall_gives_no_suggestion():
    model = nn.Linear(4, 1)
    trainer = tiny_trainer(model=model, loss=lambda output, targets: 0 * output.sum() + 1)
    search = find_lr(trainer, iters=20)
    assert (search.suggestion, search.overrides, search.factor) == (None, {}, None)
    assert find_lr(trainer, iters=1).suggestion is None


def test_groups_and_optimizers_keep_their_ratios():
    one, two = nn.Linear(4, 4), nn.Linear(4, 3)
    model = nn.Sequential(one, two)
    groups = [{"params": [one.weight], "lr": 0.01}, {"params": [one.bias]}]
    queue = SimpleQueue()  # A list would be put back after the search.

    def step(run, batch):
        rates = [group["lr"] for each in run.optimizers.values() for group in each.param_groups]
        queue.put([float(rate) for rate in rates])
        return nn.functional.cross_entropy(run.model(batch[0]), batch[1])

    optimizers = {
        "a": torch.optim.SGD(groups, lr=0.1),
        "b": torch.optim.SGD(two.parameters(), lr=torch.tensor(0.05)),
    }
    trainer = tiny_trainer(model=model, optimizer=optimizers, step={"a": step, "b": step})
    search = find_lr(trainer, iters=20, first=1e-3, last=1.0)
    seen = [queue.get() for _ in range(queue.qsize())]
    assert seen[0] == pytest.approx([1e-4, 1e-3, 5e-4])
    assert seen[-1] == pytest.approx([0.1, 1.0, 0.5])
    assert set(search.overrides) == {"optimizer.a.lr", "optimizer.b.lr"}
    assert search.overrides["optimizer.b.lr"] == pytest.approx(
        search.overrides["optimizer.a.lr"] / 2, rel=0.1
    )
    assert [float(group["lr"]) for group in optimizers["b"].param_groups] == pytest.approx([0.05])


def test_the_weights_to_begin_with_are_loaded_for_the_search(tmp_path):
    make_classifier(hooks=[SaveCheckpoint()], run_dir=tmp_path, max_epochs=3).train()
    first = find_lr(make_classifier(), iters=1).losses
    loaded = make_classifier(setup={"load_from": tmp_path / "epoch_3.pth"})
    before = loaded.run.model[0].weight.clone()
    assert find_lr(loaded, iters=1).losses < first
    assert torch.equal(loaded.run.model[0].weight, before)
    loaded.train()
    assert not torch.equal(loaded.run.model[0].weight, before)


def zero_rate():
    model = nn.Linear(4, 3)
    return tiny_trainer(model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.0))


class Makes(RecordCalls):
    def change_update(self, run, update):
        return Update.like(update)


@pytest.mark.parametrize(
    ("make", "options", "error", "message"),
    [
        (tiny_trainer, {"first": 0}, ModelError, "The rates must rise from above 0"),
        (tiny_trainer, {"first": 1, "last": 0.1}, ModelError, "The rates must rise"),
        (tiny_trainer, {"iters": 0}, ModelError, "iters must be at least 1"),
        (zero_rate, {}, ModelError, "All learning rates are 0"),
        (
            lambda: tiny_trainer(train_data=iter(make_data()), max_epochs=1), {}, DataError,
            "can be read only once",
        ),
        (lambda: tiny_trainer(Makes()), {}, HookError, "'makes' changes the update"),
        (lambda: tiny_trainer(optimizer=None), {}, ModelError, "There is no optimizer"),
    ],
)  # fmt: skip
def test_what_cannot_be_searched_is_rejected(make, options, error, message):
    with pytest.raises(error, match=message):
        find_lr(make(), **options)


def test_a_run_that_is_to_be_resumed_is_rejected(tmp_path):
    make_classifier(hooks=[SaveCheckpoint()], run_dir=tmp_path).train()
    trainer = make_classifier(run_dir=tmp_path, resume=True, max_epochs=2)
    with pytest.raises(ModelError, match="its checkpoint is not loaded yet"):
        find_lr(trainer)
    trainer.train()
    assert find_lr(trainer, iters=1).rates


# --- on many ranks


class ByHand(Update):
    """Makes the update its own way, from what it computes."""

    def make(self, run, batches):
        self.zero_grad()
        run.batch = batches[0]
        loss = self.compute(run)
        self.record(run, loss)
        self.backward(loss)
        self.apply(run)


def on_plain_data(run_dir=None, **changes):
    return make(run_dir, resume=None, default_hooks=False, **{"model": Plain, **changes})[0]


def with_own_update(*_):
    model = Plain()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    update = ByHand("", forward_inputs, loss_from(nn.functional.mse_loss), [optimizer])
    return on_plain_data(step=update, loss=None, optimizer=optimizer, model=lambda: model)


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3])
def test_ranks_find_what_one_process_finds(size):
    def search():
        return find_lr(on_plain_data(accumulate=2), last=1e4, iters=40)

    alone, together = search(), on_ranks(search, size)
    assert len(alone.losses) < 40  # It diverges, and all ranks end in the same iteration.
    for found in together:
        assert (found.ended, found.rates) == (alone.ended, alone.rates)
        assert found.losses == together[0].losses
        assert found.losses == pytest.approx(alone.losses, rel=1e-3)
        assert found.overrides == alone.overrides


RANKED = {
    "replicated": lambda: make(None, resume=None, default_hooks=False)[0],
    "sharded": lambda: make(None, resume=None, default_hooks=False, parallel="sharded")[0],
    "without a seed": lambda: make(None, resume=None, default_hooks=False, seed=None)[0],
    "streams": lambda: make(
        None, resume=None, default_hooks=False, names=False, data={"mix": "cycle"}, loss=None,
        step=step_of_both, train_data=streams_of_pairs(), model=Plain,
    )[0],
    "an update of one's own": with_own_update,
}  # fmt: skip


def streams_of_pairs():
    return {
        name: DataLoader(data(count), 6, shuffle=True) for name, count in (("a", 31), ("b", 17))
    }


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, pytest.param(3, marks=pytest.mark.long)])
@pytest.mark.parametrize("case", RANKED)
def test_the_training_of_ranks_after_it_ends_with_the_same_bits(case, size):
    def work(searches):
        torch.manual_seed(8)
        trainer = RANKED[case]()
        torch.manual_seed(9)
        if searches:
            find_lr(trainer, iters=7)
        trainer.train(max_epochs=1)
        if searches:
            find_lr(trainer, iters=3)
        trainer.train(max_epochs=2)
        weights = trainer.run.model.state_dict().values()
        return [one.full_tensor() if hasattr(one, "full_tensor") else one for one in weights]

    plain, searched = on_ranks(work, size, False), on_ranks(work, size, True)
    for one, other in zip(plain, searched, strict=True):
        assert all(torch.equal(*pair) for pair in zip(one, other, strict=True))


@pytest.mark.slow
def test_a_rank_that_fails_ends_the_search_of_all():
    def step(run, batch):
        if run.world.rank == 1 and run.progress.iter == 3:
            raise ValueError("this batch is bad")
        return nn.functional.mse_loss(run.model(batch[0]), batch[1])

    first, second = each_rank(lambda: find_lr(on_plain_data(step=step, loss=None)), 2)
    assert "ValueError: this batch is bad\nin training, iteration 4" in second.error
    assert "PeerFailed: rank 1 failed in iteration 3: ValueError: this batch is bad" in first.error
    assert abs(first.seconds - second.seconds) < 10
