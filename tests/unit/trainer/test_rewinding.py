import itertools
import json
import logging

import pytest
import torch
from tests.names import iter_file
from tests.ranks import on_ranks
from tests.tiny import assert_same_bits, make_data, make_trainer
from torch import nn
from torch.utils.data import DataLoader, Dataset

from hookloop.checkpoint.store.index import Saved
from hookloop.engine.hook import Hook
from hookloop.errors import CheckpointError, DataError
from hookloop.hooks import AverageWeights, SaveCheckpoint, StepSchedules, WriteCSV, WriteMetrics
from hookloop.trainer.rewinding import current_branch
from hookloop.trainer.trainer import Trainer


class GoBack(Hook):
    """Goes back once after each of some iterations, and leaves out what led there."""

    takes_part_in_training = True

    def __init__(self, *times):
        self.times = list(times)  # After which iteration, to which, and without which.
        self.seen = []

    def after_train_iter(self, run):
        if self.times and run.progress.iter == self.times[0][0]:
            _, to, skip = self.times.pop(0)
            run.rewind(to, skip=skip, reason="a test", everywhere=True)

    def after_rewind(self, run, rewind):
        self.seen.append((run.progress.iter, rewind.to, rewind.skip))


class Noisy(Dataset):
    """Samples with random augmentation, some of them left out."""

    def __init__(self, without=(), count=24):
        self.kept = [index for index in range(count) if index // 4 not in without]

    def __len__(self):
        return len(self.kept)

    def __getitem__(self, index):
        inputs = torch.randn(4, generator=torch.Generator().manual_seed(self.kept[index]))
        return inputs, inputs.sum().view(1)


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.Tanh(), nn.Linear(8, 1))


def train(data, *hooks, epochs=2, model=None, **options):
    model = model or network()
    options.setdefault("optimizer", torch.optim.AdamW(model.parameters(), lr=0.01))
    trainer = make_trainer(
        model=model, train_data=data, max_epochs=epochs, seed=3, hooks=list(hooks), **options
    )
    trainer.train()
    return trainer


def weights(trainer):
    return trainer.run.model


def assert_equal_states(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        if isinstance(value, dict):
            assert_equal_states(value, other[name])
        elif isinstance(value, torch.Tensor):
            assert torch.equal(value, other[name])
        else:
            assert value == other[name]


def test_going_back_without_leaving_anything_out_changes_nothing(tmp_path):
    loader = lambda: make_data(24, shuffle=True)  # noqa: E731
    plain = train(loader())
    hook = GoBack((5, 3, ()), (9, 6, ()))
    back = train(loader(), hook, SaveCheckpoint(every=3, keep=None), run_dir=tmp_path)
    assert hook.seen == [(3, 3, ()), (6, 6, ())]
    assert_same_bits(weights(back), weights(plain))
    assert back.run.progress.iter == 12


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("after", "to", "skip"),
    [(4, 2, [4]), (5, 2, [3, 5]), (2, 0, [1, 2]), (6, 5, [6]), (8, 4, [7, 8]), (7, 6, [7])],
    ids=["inside", "two", "from the start", "last of the epoch", "over an epoch", "first"],
)
def test_the_run_is_that_of_data_without_the_batch(after, to, skip, workers, tmp_path):
    class Both(Dataset):
        """Two epochs in one, so that data of either can be left out."""

        def __init__(self, lost=()):
            self.all = Noisy(count=48)
            self.kept = [index for index in range(48) if index // 4 + 1 not in lost]

        def __len__(self):
            return len(self.kept)

        def __getitem__(self, index):
            return self.all[self.kept[index]]

    options = {"batch_size": 4, "num_workers": workers, "persistent_workers": workers > 0}
    without = train(DataLoader(Both(skip), **options), epochs=1)
    saves = SaveCheckpoint(every=1, keep=None)
    hook = GoBack((after, to, skip))
    hooks = [hook, saves, SaveAtStart()]
    back = train(DataLoader(Both(), **options), *hooks, epochs=1, run_dir=tmp_path)
    assert back.run.progress.iter == 12 - len(skip)
    assert_same_bits(weights(back), weights(without))


def test_two_epochs_lose_the_batch_once(tmp_path):
    hook = GoBack((4, 2, [4]))
    back = train(make_data(24), hook, SaveCheckpoint(every=2, keep=None), run_dir=tmp_path)
    assert (back.run.progress.iter, back.run.progress.epoch) == (11, 2)
    # The next epoch has the length of the data again.
    assert back.run.progress.epoch_iters == 6


def test_going_back_twice_keeps_what_was_left_out_first(tmp_path):
    data = [(batch[0] + index, batch[1]) for index, batch in enumerate(make_data(48))]
    hook = GoBack((5, 4, [5]), (6, 2, [4, 6]))  # The sixth is the seventh of the data then.
    back = train(data, hook, SaveCheckpoint(every=2, keep=None), epochs=1, run_dir=tmp_path)
    assert back.run.progress.skipped_iters == (4, 5, 7)
    left = [batch for number, batch in enumerate(data, 1) if number not in (4, 5, 7)]
    assert_same_bits(weights(back), weights(train(left, epochs=1)))


@pytest.mark.parametrize("mix", ["cycle", "zip", {"a": 2, "b": 1}], ids=str)
def test_streams_are_mixed_as_before(mix, tmp_path):
    def streams():
        return {"a": make_data(16, shuffle=True), "b": make_data(24)}

    def step(run, batch):
        pairs = batch.values() if isinstance(batch, dict) else [batch]
        return sum(nn.functional.mse_loss(run.model(x), y) for x, y in pairs)

    options = {"data.mix": mix, "step": step}
    plain = train(streams(), **options)
    hook = GoBack((3, 2, ()))
    saves = SaveCheckpoint(every=2, keep=None)
    assert_same_bits(
        weights(train(streams(), hook, saves, run_dir=tmp_path, **options)), weights(plain)
    )
    assert hook.seen


def test_accumulation_and_a_fixed_number_of_iterations(tmp_path):
    options = {"accumulate": 2, "data.epoch_iters": 3}
    plain = train(make_data(40, shuffle=True), **options)
    saves = SaveCheckpoint(every=1, keep=None)
    back = train(
        make_data(40, shuffle=True), GoBack((5, 2, ())), saves, run_dir=tmp_path, **options
    )
    assert_same_bits(weights(back), weights(plain))


def test_averages_schedules_and_the_scheduler_go_back_too(tmp_path):
    def parts(model):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        return {
            "optimizer": optimizer,
            "schedule": torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9),
        }

    model, other = network(), network()
    average, average_back = AverageWeights(), AverageWeights()
    plain = train(make_data(24), average, StepSchedules(), model=model, **parts(model))
    hooks = [average_back, StepSchedules(), GoBack((10, 4, ())), SaveCheckpoint(every=4, keep=None)]
    back = train(make_data(24), *hooks, model=other, run_dir=tmp_path, **parts(other))
    assert_same_bits(weights(back), weights(plain))
    assert_equal_states(average_back.state_dict(), average.state_dict())
    assert back.run.optimizer.param_groups[0]["lr"] == plain.run.optimizer.param_groups[0]["lr"]


def test_files_hold_the_new_branch_only(tmp_path):
    def lines(where):
        text = (where / "metrics.jsonl").read_text().splitlines()
        return [{k: v for k, v in json.loads(one).items() if k != "time"} for one in text]

    def write():
        return [WriteMetrics(every=1), WriteCSV(file="own.csv", every="1 iters")]

    val = {"val_data": make_data(8)}
    train(make_data(24), *write(), run_dir=tmp_path / "plain", **val)
    saves = SaveCheckpoint(every=2, keep=None)
    back = GoBack((9, 5, ()))
    train(make_data(24), *write(), saves, back, run_dir=tmp_path / "back", **val)
    assert lines(tmp_path / "back") == lines(tmp_path / "plain")
    rows = [(tmp_path / one / "own.csv").read_text().splitlines() for one in ("plain", "back")]
    without_time = [[row.partition(",")[2] for row in own] for own in rows]
    assert without_time[0] == without_time[1]
    summary = json.loads((tmp_path / "back" / "summary.json").read_text())
    assert summary["changes"] == [{"iter": 4, "key": "iter", "old": 9, "new": 4, "how": "rewound"}]


class Kill(Exception):
    """Ends a run without a word, as a signal would."""


class KillAt(Hook):
    def __init__(self, iteration):
        self.iteration = iteration

    def after_train_iter(self, run):
        if run.progress.iter == self.iteration and run.progress.skipped_iters:
            raise Kill


@pytest.mark.slow
@pytest.mark.parametrize("killed", [3, 4, 5, 8])
def test_a_resume_continues_on_the_new_branch(killed, tmp_path):
    def hooks(where):
        return [SaveCheckpoint(every=2, keep=2), *where]

    loader = lambda: make_data(24, shuffle=True)  # noqa: E731
    times = (5, 2, [4])
    whole = train(loader(), *hooks([GoBack(times)]), run_dir=tmp_path / "whole")
    with pytest.raises(Kill):
        train(loader(), *hooks([GoBack(times), KillAt(killed)]), run_dir=tmp_path / "killed")
    model = network()
    resumed = make_trainer(
        model=model,
        optimizer=torch.optim.AdamW(model.parameters(), lr=0.01),
        train_data=loader(),
        max_epochs=2,
        seed=3,
        hooks=hooks([GoBack()]),
        run_dir=tmp_path / "killed",
        resume=True,
    )
    resumed.train()
    assert resumed.run.progress.skipped_iters == (4,)
    assert_same_bits(weights(resumed), weights(whole))
    assert resumed.run._internals.changes == whole.run._internals.changes


def test_a_stop_in_the_same_iteration_stops_after_going_back(tmp_path):
    class Stop(Hook):
        def after_train_iter(self, run):
            if run.progress.iter == 5:
                run.stop("enough")

    saves = SaveCheckpoint(every=2, keep=None)
    back = train(make_data(24), GoBack((5, 4, ())), Stop(), saves, run_dir=tmp_path)
    assert back.run.progress.iter == 4
    assert back.run.outcome.status == "stopped"
    assert torch.load(tmp_path / "rewound_iter_4.pth")["progress"]["iter"] == 4


def test_saves_of_the_iteration_that_is_given_up_are_not_made(tmp_path):
    saves = SaveCheckpoint(every=5, keep=None)
    train(make_data(24), GoBack((5, 0, [5])), saves, SaveAtStart(), run_dir=tmp_path, epochs=1)
    # Made after going back, at which the fifth batch was left out.
    saved = torch.load(tmp_path / iter_file(5))
    assert saved["progress"]["left_out"] == (5,)


class SaveAtStart(Hook):
    def before_train(self, run):
        run.save(iter_file(0))


def test_a_damaged_checkpoint_is_skipped(tmp_path, caplog):
    class Damage(Hook):
        def after_save_checkpoint(self, run, saved):
            if saved.iter == 4:
                saved.path.write_bytes(b"no checkpoint")

    hook = GoBack((6, 5, ()))
    hooks = [hook, Damage(), SaveCheckpoint(every=2, keep=None)]
    train(make_data(24), *hooks, run_dir=tmp_path, epochs=1)
    assert hook.seen == [(2, 2, ())]
    assert f"Going back to '{iter_file(2)}' instead" in caplog.text


def test_without_a_checkpoint_that_is_old_enough_the_run_fails(tmp_path):
    with pytest.raises(CheckpointError, match="cannot go back to iteration 1 or before"):
        train(make_data(24), GoBack((3, 1, ())), SaveCheckpoint(every=2), run_dir=tmp_path)


def test_data_that_can_be_read_once_cannot_go_back(tmp_path):
    batches = (batch for batch in list(make_data(24)))
    with pytest.raises(DataError, match="only once"):
        train(batches, GoBack((3, 2, ())), SaveCheckpoint(every=2), run_dir=tmp_path)


def test_a_rewind_after_the_training_is_too_late(tmp_path):
    class Late(Hook):
        def after_train(self, run):
            run.rewind(2)
            run.save("late.pth")

    back = train(make_data(24), Late(), SaveCheckpoint(every=2, keep=None), run_dir=tmp_path)
    assert back.run.progress.iter == 12
    assert (tmp_path / "late.pth").exists()


def test_a_hook_may_go_back_after_a_validation(tmp_path):
    class Judge(Hook):
        done = False

        def after_val_epoch(self, run, metrics):
            if run.progress.epoch == 2 and not self.done:
                self.done = True
                run.rewind(run.progress.iter - 1)

    options = {"val_data": make_data(8), "run_dir": tmp_path}
    saves = SaveCheckpoint(every="1 epoch", keep=None)
    back = train(make_data(24, shuffle=True), Judge(), saves, epochs=3, **options)
    assert back.run.progress.epoch == 3
    plain = train(make_data(24, shuffle=True), epochs=3, val_data=make_data(8))
    assert_same_bits(weights(back), weights(plain))
    assert len([one for one in back.run._internals.changes if one["how"] == "rewound"]) == 1


def test_an_own_loop_goes_back(tmp_path):
    def own(*hooks, **options):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        trainer = Trainer(
            model,
            train_data=make_data(24),
            optimizer=optimizer,
            max_epochs=2,
            seed=3,
            hooks=list(hooks),
            default_hooks=False,
            **options,
        )
        with trainer.loop() as batches:
            for inputs, targets in batches:
                optimizer.zero_grad()
                nn.functional.mse_loss(model(inputs), targets).backward()
                optimizer.step()
        return trainer

    saves = SaveCheckpoint(every=2, keep=None)
    back = own(GoBack((5, 3, ()), (9, 6, ())), saves, run_dir=tmp_path)
    assert back.run.progress.iter == 12
    assert_same_bits(weights(back), weights(own()))


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["replicated", "sharded"])
def test_ranks_go_back_together(strategy, tmp_path):
    def rank():
        saves = SaveCheckpoint(every=2, keep=None)
        hook, said = GoBack((5, 3, [4, 5])), []
        handler = logging.Handler()
        handler.emit = lambda record: said.append(record.getMessage())
        logging.getLogger("hookloop").addHandler(handler)
        where = tmp_path / "back"
        back = train(make_data(36), hook, saves, run_dir=where, parallel=strategy)
        went = [text for text in said if "went back" in text]
        assert len(went) == (1 if back.run.world.is_main else 0)  # Said once, by the first rank.
        return hook.seen, back.run.progress.iter, back.run.progress.skipped_iters, whole(back)

    def plain():
        batches = list(make_data(36))
        first = [batch for number, batch in enumerate(batches, 1) if number not in (4, 5)]
        both = [*first, *batches]
        return whole(train(both, epochs=1, parallel=strategy))

    def whole(trainer):
        return trainer.run.with_model(
            lambda: [float(p.detach().sum()) for p in trainer.run.model.parameters()]
        )

    found, expected = on_ranks(rank, 3), on_ranks(plain, 3)
    for (seen, iterations, left_out, sums), sums_plain in zip(found, expected, strict=True):
        assert seen == [(2, 2, (4, 5))]
        assert (iterations, left_out) == (16, (4, 5))
        assert sums == pytest.approx(sums_plain, rel=1e-5)


def test_the_current_branch_leaves_out_what_was_given_up():
    clock = itertools.count()

    def saved(iteration):
        return Saved(iter_file(iteration), "", iteration, 0, time=float(next(clock)))

    entries = [saved(iteration) for iteration in (10, 20, 30, 10, 15, 25)]
    assert [one.iter for one in current_branch(entries)] == [25, 15, 10, 10]
