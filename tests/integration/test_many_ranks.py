"""Training on many ranks: the same result as one process, and the same bits after a kill."""

import os
import shutil
import signal

import pytest
import torch
from tests.integration.many_ranks import (
    KillAt,
    Plain,
    data,
    distance,
    global_batches,
    is_equal,
    make,
    train,
)
from tests.ranks import each_rank, on_ranks
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader

from hookloop import Hook
from hookloop.checkpoint.store.store import CheckpointStore
from hookloop.engine.points import POINTS
from hookloop.hooks import AverageWeights, ClipGradients, SavePredictions, StopOnNaN

pytestmark = pytest.mark.slow


# --- the step -----------------------------------------------------------------------------------


LONG = pytest.mark.long  # Beside a smaller case of the same.


@pytest.mark.parametrize(
    ("size", "accumulate"),
    [(3, 1), (4, 3), *(pytest.param(*one, marks=LONG) for one in ((2, 1), (2, 3), (3, 3), (4, 1)))],
)
def test_ranks_compute_what_one_process_computes(tmp_path, size, accumulate):
    changes = {"model": Plain, "accumulate": accumulate, "clip_norm": 1.0}
    alone = train(tmp_path / "alone", **changes)
    together = on_ranks(lambda: train(tmp_path / "together", **changes), size)
    assert all(is_equal(together[0], result) for result in together)
    assert distance(alone, together[0]) < 1e-6
    for name, value in alone["metrics"].items():
        assert together[0]["metrics"][name] == pytest.approx(value, rel=1e-5)
    if accumulate == 1:
        assert global_batches(together) == alone["seen"]


def test_ranks_draw_other_dropout_and_have_equal_weights(tmp_path):
    masks = {}

    class Mask(Hook):
        takes_part_in_training = True  # It draws from the numbers of the training.

        def after_forward(self, run):
            if run.progress.iter == 0 and run.phase == "train":
                masks[run.world.rank] = torch.nn.functional.dropout(torch.ones(64), 0.5)

    def work():
        result = train(tmp_path / "run", hooks=[Mask()], max_epochs=1)
        return masks, result

    results = on_ranks(work, 3)
    drawn = [mask[rank] for rank, (mask, _) in enumerate(results)]
    assert not torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[1], drawn[2])
    assert all(is_equal(results[0][1], result) for _, result in results)


# --- resume -------------------------------------------------------------------------------------

KILLS = {
    "one rank": KillAt("after_train_iter", 17, [2]),
    "the first rank": KillAt("after_train_iter", 8, [0]),
    "all ranks": KillAt("before_update", 21, [0, 1, 2]),
    "in a save": KillAt("before_save_checkpoint", 15, [1]),
    "in a validation": KillAt("after_val_iter", 13, [0]),
}


@pytest.fixture(scope="module", params=["replicated", "sharded"])
def whole_run(request, tmp_path_factory):
    """A run on 3 ranks without a break."""
    directory = tmp_path_factory.mktemp("whole") / "run"
    return request.param, on_ranks(lambda: train(directory, parallel=request.param), 3)


@pytest.mark.parametrize(
    "kill",
    [name if name == "one rank" else pytest.param(name, marks=LONG) for name in KILLS],
)
def test_a_killed_run_continues_to_the_same_bits(tmp_path, whole_run, kill):
    strategy, whole = whole_run
    directory = tmp_path / "run"
    killing = [KILLS[kill]]
    ends = each_rank(lambda: train(directory, hooks=killing, parallel=strategy), 3)
    assert -signal.SIGKILL in [end.code for end in ends]
    assert 0 not in [end.code for end in ends]
    # The survivors end long before a rank that does not come is given up, after 300 s.
    assert max(end.seconds for end in ends) - min(end.seconds for end in ends) < 120
    continued = on_ranks(lambda: train(directory, parallel=strategy), 3)
    for before, after in zip(whole, continued, strict=True):
        assert is_equal(before, after)
        assert after["seen"].items() <= before["seen"].items()
        assert after["metrics"] == before["metrics"]


@pytest.mark.parametrize("strategy", [pytest.param("replicated", marks=LONG), "sharded"])
def test_hooks_that_keep_weights_or_data_continue_exactly(tmp_path, strategy):
    def work(name, *more):
        hooks = [
            AverageWeights(),
            ClipGradients(max_norm=0.5),
            StopOnNaN(gradients=True, every=1),
            SavePredictions(),
            *more,
        ]
        return train(tmp_path / name, hooks=hooks, parallel=strategy)

    whole = on_ranks(work, 3, "whole")
    each_rank(work, 3, "run", KillAt("after_train_iter", 17, [1]))
    continued = on_ranks(work, 3, "run")
    for one, other in zip(whole, continued, strict=True):
        assert is_equal(one, other) and one["metrics"] == other["metrics"]


@pytest.mark.parametrize(
    ("rank", "number"),
    [
        (2, signal.SIGTERM),
        pytest.param(0, signal.SIGINT, marks=LONG),
        pytest.param(2, signal.SIGUSR1, marks=LONG),
    ],
)
def test_a_signal_to_one_rank_ends_all_in_order(tmp_path, rank, number):
    directory = tmp_path / "run"
    signalled = [KillAt("after_train_iter", 9, [rank], number)]
    ends = each_rank(lambda: train(directory, hooks=signalled, save_every="10 epochs"), 3)
    assert [end.code for end in ends] == [128 + number] * 3
    assert len(list(directory.glob("*.pth"))) == 1
    whole = on_ranks(lambda: train(tmp_path / "whole", save_every="10 epochs"), 3)
    continued = on_ranks(lambda: train(directory, save_every="10 epochs"), 3)
    assert all(is_equal(one, other) for one, other in zip(whole, continued, strict=True))


@pytest.mark.parametrize("size", [3, *(pytest.param(one, marks=LONG) for one in (1, 2, 4))])
def test_a_run_continues_on_any_number_of_ranks(tmp_path, size):
    changes = {"model": Plain, "save_every": 7}
    whole = on_ranks(lambda: train(tmp_path / "whole", **changes), size)
    batches = global_batches(whole)
    killing = [KillAt("after_train_iter", 16, range(size))]
    each_rank(lambda: train(tmp_path / "run", hooks=killing, **changes), size)
    for other in {1, 2, 3, 4} - {size}:
        directory = tmp_path / f"on_{other}"
        shutil.copytree(tmp_path / "run", directory)
        continued = on_ranks(lambda d=directory: train(d, **changes), other)
        assert global_batches(continued).items() <= batches.items()
        assert distance(whole[0], continued[0]) < 1e-5


def test_shards_continue_in_one_process_and_the_reverse(tmp_path):
    changes = {"model": Plain, "save_every": 7}
    whole = train(tmp_path / "whole", **changes)
    killing = [KillAt("after_train_iter", 16, [0, 1, 2])]
    sharded = tmp_path / "sharded"
    each_rank(lambda: train(sharded, hooks=killing, parallel="sharded", **changes), 3)
    assert distance(whole, train(sharded, **changes)) < 1e-5
    alone = tmp_path / "alone"
    each_rank(lambda: train(alone, hooks=killing, **changes), 1)
    together = on_ranks(lambda: train(alone, parallel="sharded", **changes), 3)
    assert distance(whole, together[0]) < 1e-5


# --- evaluation ---------------------------------------------------------------------------------


class CountBatches:
    """A metric of the user's own, which knows nothing of ranks."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.samples, self.total = 0, 0.0

    def update(self, output, targets):
        self.samples += len(targets)
        self.total += float((output - targets).abs().sum())

    def compute(self):
        return {"samples": float(self.samples), "mean": self.total / self.samples}


@pytest.mark.parametrize(
    ("strategy", "samples"),
    [
        ("replicated", 1003),
        ("sharded", 3),
        *(
            pytest.param(*one, marks=LONG)
            for one in (("replicated", 3), ("replicated", 1), ("sharded", 1003), ("sharded", 1))
        ),
    ],
)
def test_every_sample_is_evaluated_once(tmp_path, strategy, samples):
    def evaluate(parallel=None):
        from torchmetrics import MeanAbsoluteError

        trainer, _ = make(
            None,
            model=Plain,
            resume=None,
            default_hooks=False,
            parallel=parallel,
            val_data=DataLoader(data(samples), batch_size=16),
            metrics={
                "mae": lambda output, targets: (output - targets).abs().mean(),
                "torch": MeanAbsoluteError(),
                "own": CountBatches(),
            },
        )
        return dict(trainer.validate())

    alone = evaluate()
    assert alone["val/own/samples"] == samples
    for result in on_ranks(lambda: evaluate(strategy), 4):
        assert result == {name: pytest.approx(value, rel=1e-5) for name, value in alone.items()}


# --- agreement ----------------------------------------------------------------------------------


class OnOneRank(Hook):
    """Requests something on one rank only."""

    def __init__(self, what, at=9, rank=1):
        self.what, self.at, self.rank = what, at, rank
        self.stopped_at = self.saved = self.validated_at = None

    def after_train_iter(self, run):
        if run.progress.iter == self.at and run.world.rank == self.rank:
            {"stop": lambda: run.stop("enough"), "save": run.save, "validate": run.validate}[
                self.what
            ]()

    def on_stop(self, run, reason):
        self.stopped_at = run.progress.iter, reason

    def after_save_checkpoint(self, run, saved):
        self.saved = saved.name

    def before_val(self, run):
        self.validated_at = self.validated_at or run.progress.iter


@pytest.mark.parametrize("what", ["stop", "save", "validate"])
def test_a_request_of_one_rank_is_obeyed_by_all_in_the_same_iteration(tmp_path, what):
    def work():
        hook = OnOneRank(what)
        result = train(tmp_path / "run", hooks=[hook], save_every="10 epochs")
        return result["status"], hook.stopped_at, hook.saved, hook.validated_at

    results = on_ranks(work, 3)
    assert results[0] == results[1] == results[2]
    status, stopped_at, saved, validated_at = results[0]
    # Its code names a request, so the ranks meet after each iteration.
    if what == "stop":
        assert status == "stopped" and stopped_at == (9, "enough")
    elif what == "save":
        assert (tmp_path / "run" / "iter_9.pth").exists() and saved is not None
    else:
        assert validated_at == 9


def test_a_request_that_only_some_ranks_make_everywhere_is_rejected(tmp_path):
    class Lonely(Hook):
        def after_train_iter(self, run):
            if run.progress.iter == 3 and run.world.rank == 1:
                run.stop("enough", everywhere=True)

        def before_update(self, run):
            run.stop  # noqa: B018 - so that ranks meet after each iteration

    ends = each_rank(lambda: train(tmp_path / "run", hooks=[Lonely()]), 3)
    assert [end.code for end in ends] == [1, 1, 1]
    assert "only the ranks [1] made a request with everywhere=True" in ends[0].error


# --- failures -----------------------------------------------------------------------------------

OFTEN = {
    "before_run",
    "after_loss",
    "after_train_iter",
    "after_val_epoch",
    "before_save_checkpoint",
}
NOT_REACHED = {"after_load_checkpoint", "after_rewind", "on_stop", "on_exception"} | {
    point.name for point in POINTS if "test" in point.name or "predict" in point.name
}


@pytest.mark.parametrize(
    "point",
    [
        point.name if point.name in OFTEN else pytest.param(point.name, marks=LONG)
        for point in POINTS
        if point.name not in NOT_REACHED
    ],
)
def test_a_failure_at_any_point_of_one_rank_ends_all(tmp_path, point):
    def fail(run, *_):
        if run.world.rank == 1:
            raise ValueError("bad sample 17")

    class Failing(Hook):
        pass

    hook = Failing()
    setattr(hook, point, fail)
    ends = each_rank(lambda: train(tmp_path / "run", hooks=[hook], max_epochs=1, samples=24), 3)
    # At the last points the others may have done their work.
    is_late = point in ("after_run", "after_save_checkpoint")
    assert [end.code for end in ends] in ([[0, 1, 0], [1, 1, 1]] if is_late else [[1, 1, 1]])
    assert "ValueError: bad sample 17" in ends[1].error
    if not is_late:
        log = (tmp_path / "run" / "run.log").read_text()
        assert "rank 1 failed in iteration" in log and "ValueError: bad sample 17" in log


@pytest.mark.long
@pytest.mark.parametrize("point", [point.name for point in POINTS if "predict" in point.name])
def test_a_failure_in_the_prediction_of_one_rank_ends_all(tmp_path, point):
    def fail(run, *_):
        if run.world.rank == 1:
            raise ValueError("bad sample 17")

    def predict():
        hook = Hook()
        setattr(hook, point, fail)
        trainer, _ = make(tmp_path / "run", hooks=[hook])
        trainer.predict(DataLoader(data(24), batch_size=8))

    ends = each_rank(predict, 3)
    assert [end.code for end in ends] == [1, 1, 1]
    assert "ValueError: bad sample 17" in ends[1].error


def test_a_rank_that_does_not_come_is_named(tmp_path):
    class Hang(Hook):
        def before_train_iter(self, run):
            if run.progress.iter == 2 and run.world.rank == 1:
                signal.sigwait({signal.SIGALRM}) if signal.alarm(6) == 0 else None

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    try:
        ends = each_rank(
            lambda: train(tmp_path / "run", hooks=[Hang()], parallel={"timeout": 2}), 3
        )
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    assert [end.code for end in ends] == [1, 1, 1]
    log = (tmp_path / "run" / "run.log").read_text()
    assert "rank 1 did not come in time after iteration 2" in log


def test_ranks_that_were_started_differently_are_rejected(tmp_path):
    def work():
        import os

        seed = 7 if os.environ["RANK"] == "2" else 5
        train(tmp_path / "run", seed=seed)

    ends = each_rank(work, 3)
    assert [end.code for end in ends] == [1, 1, 1]
    assert "Rank 2 was started with another seed than rank 0" in ends[0].error


def test_a_model_that_is_wrapped_already_is_rejected():
    from hookloop.errors import ModelError

    class DistributedDataParallel(torch.nn.Linear):
        def __init__(self):
            super().__init__(4, 1)

    with pytest.raises(ModelError, match="wrapped in DistributedDataParallel: give the model"):
        make(None, model=DistributedDataParallel, resume=None)


# --- steps of every kind ------------------------------------------------------------------------


def test_a_step_may_call_anything_and_count_tokens(tmp_path):
    def step(run, batch):
        inputs, targets = batch
        model = run.model
        output = model[2](torch.tanh(model[0](inputs)))  # Past the forward of the model.
        counted = inputs[:, 1] > 0
        errors = (output - targets).pow(2)[counted]
        loss = errors.sum() / counted.sum().clamp(min=1)
        return {"loss": loss, "weight": counted.sum(), "share": counted.float().mean()}

    changes = {"model": Plain, "loss": None, "step": step, "accumulate": 2}
    for strategy in ("replicated", "sharded"):
        alone = train(tmp_path / f"alone_{strategy}", **changes)
        together = on_ranks(lambda s=strategy: train(tmp_path / s, parallel=s, **changes), 3)
        assert all(is_equal(together[0], result) for result in together)
        assert distance(alone, together[0]) < 1e-6


def test_a_step_may_skip_an_update_on_some_ranks_or_on_all(tmp_path):
    def step(run, batch):
        inputs, targets = batch
        if run.progress.iter == 3 or (run.progress.iter == 5 and run.world.rank == 1):
            return None
        return mse_loss(run.model(inputs), targets)

    together = on_ranks(lambda: train(tmp_path / "run", model=Plain, loss=None, step=step), 3)
    assert all(is_equal(together[0], result) for result in together)
    ends = each_rank(
        lambda: train(tmp_path / "shards", model=Plain, loss=None, step=step, parallel="sharded"), 3
    )
    assert "no loss on the ranks [1] only" in ends[0].error


def test_a_save_that_a_failure_prevents_is_not_made_without_the_other_ranks(tmp_path):
    killing = [KillAt("after_train_iter", 8, [2])]
    each_rank(lambda: train(tmp_path / "run", hooks=killing, save_every=4), 3)
    found = CheckpointStore(tmp_path / "run").newest()
    assert found is not None
    assert found[1]["progress"]["iter"] in (4, 8)
    assert len(found[1]["rng"]) == 3


def test_on_many_ranks_a_signal_that_comes_twice_at_once_is_one(tmp_path):
    class Send(Hook):
        def after_train_iter(self, run):
            if run.progress.iter == 4 and run.world.rank == 1:
                for _ in range(2):  # From the cluster, and from the launcher.
                    os.kill(os.getpid(), signal.SIGTERM)

    ends = each_rank(lambda: train(tmp_path / "run", hooks=[Send()], save_every="10 epochs"), 2)
    assert [end.code for end in ends] == [128 + signal.SIGTERM] * 2
    assert len(list((tmp_path / "run").glob("*.pth"))) == 1
