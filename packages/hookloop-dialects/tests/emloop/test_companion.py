"""emloop's epochs on top of ours."""

import pytest
import torch
from tests.emloop.looking import Look, train
from tests.ranks import on_ranks
from tests.tiny import assert_same_bits, make_data, make_trainer

from hookloop.errors import HookError
from hookloop.hooks import ComputeStats, SaveCheckpoint
from hookloop_dialects.emloop import AbstractHook, hooks
from hookloop_dialects.emloop.adapter import EmloopAdapter
from hookloop_dialects.emloop.companion import check_order


class Anything(AbstractHook):
    """Declares nothing, so it may write anything into the epoch's data."""

    def after_epoch(self, epoch_id, epoch_data): ...


def test_the_zeroth_epoch_leaves_the_training_as_it_is(tmp_path):
    shuffled = {"train_data": make_data(shuffle=True), "seed": 3}
    plain = train(tmp_path, run_dir=tmp_path / "plain", **shuffled)
    hook = Look()
    with_zeroth = make_trainer(hooks=[hook], run_dir=tmp_path / "run", **shuffled)
    with_zeroth.train()
    assert hook.seen == ["train"] * 6
    assert_same_bits(plain.run.model, with_zeroth.run.model)
    assert "train" not in with_zeroth.run.val_data


def test_data_that_can_be_read_once_is_left_for_the_training(tmp_path):
    hook = Look()
    data = iter(list(make_data()))
    make_trainer(hooks=[hook], train_data=data, max_iters=3, run_dir=tmp_path / "run").train()
    assert hook.seen == ["train"] * 3


def test_a_resumed_run_has_no_second_zeroth_epoch(tmp_path):
    def count(epochs, **options):
        hook = Look()
        hooks_of_run = [hook, SaveCheckpoint()]
        make_trainer(
            hooks=hooks_of_run, max_epochs=epochs, run_dir=tmp_path / "run", **options
        ).train()
        return len(hook.seen)

    assert count(1) == 6
    assert count(2, resume=True) == 3


def test_streams_have_emloops_names(tmp_path):
    hook = Look()
    trainer = train(tmp_path, hook, val_data=make_data(4), data={"test": make_data(4)})
    trainer.test()
    assert hook.seen == ["train"] * 3 + ["valid", "test"]
    several = Look()
    data = {"clean": make_data(4), "noisy": make_data(4)}
    train(tmp_path, several, val_data=data, run_dir=tmp_path / "several")
    assert several.seen == ["train"] * 3 + ["clean", "noisy"]


def test_what_one_hook_adds_to_a_batch_the_next_one_sees(tmp_path):
    flatten, look = hooks.Flatten({"inputs": "flat"}), Look(lambda stream, data: len(data["flat"]))
    train(tmp_path, flatten, look)
    assert look.seen == [16] * 3


@pytest.mark.parametrize(
    ("listed", "rejected"),
    [
        ([hooks.ComputeStats(["loss"]), hooks.LogVariables()], False),
        ([hooks.LogVariables(), hooks.ComputeStats(["loss"])], True),
        ([hooks.LogVariables(["loss"]), hooks.ComputeStats(["loss"])], True),
        ([Anything(), hooks.LogVariables(["size"])], False),
        ([Anything(), hooks.LogVariables(), hooks.ComputeStats(["loss"])], False),
        ([Look(), hooks.LogVariables(), hooks.ComputeStats(["loss"])], True),
        ([hooks.ComputeStats(["loss"]), hooks.LogVariables(), hooks.ComputeStats(["loss"])], False),
    ],
)
def test_a_reader_before_its_only_writer_is_rejected(listed, rejected):
    adapters = [EmloopAdapter(hook) for hook in listed]
    if rejected:
        with pytest.raises(HookError, match="list 'compute_stats' before 'log_variables'"):
            check_order(adapters)
    else:
        check_order(adapters)


@pytest.mark.parametrize(
    ("reader", "name"),
    [(hooks.SaveBest(model=None), "loss"), (hooks.LogVariables(["size"]), "size")],
)
def test_a_reader_of_what_no_hook_writes_is_rejected(reader, name):
    listed = [hooks.ComputeStats(["labels"]), reader]
    with pytest.raises(HookError, match=f"reads '{name}' .* which no hook writes: list Compute"):
        make_trainer(hooks=listed, val_data=make_data()).check()
    make_trainer(hooks=[*listed, Anything()], val_data=make_data()).check()
    metrics = {name: lambda output, targets: output.mean()}
    if name != "loss":
        make_trainer(hooks=listed, val_data=make_data(), metrics=metrics).check()


def test_a_validation_that_a_resume_repeats_ends_the_epoch_once(tmp_path):
    class Count(AbstractHook):
        def __init__(self):
            super().__init__()
            self.epochs = []

        def after_epoch(self, epoch_id, epoch_data):
            self.epochs.append((epoch_id, list(epoch_data)))

        def state_dict(self):
            return {"epochs": self.epochs}

        def load_state_dict(self, state):
            self.epochs = [tuple(one) for one in state["epochs"]]

    def make(**options):
        count, best = Count(), hooks.SaveBest(model=None)
        listed = [hooks.ComputeStats(["loss"]), best, count, SaveCheckpoint()]
        trainer = make_trainer(
            hooks=listed, val_data=make_data(4), run_dir=tmp_path / "run", **options
        )
        best._model = trainer.run.model
        return trainer, count

    trainer, _ = make(max_epochs=2)
    trainer.train()
    streams = ["train", "valid"]
    # epoch_1.pth was saved before the validation, model_best.pth after it: both resume in between.
    for file in ("epoch_1.pth", "model_best.pth"):
        again, count = make(max_epochs=3, resume=tmp_path / "run" / file)
        again.train()
        assert count.epochs == [(epoch, streams) for epoch in range(4)], file


def test_the_profile_has_a_time_for_each_batch_and_stream(tmp_path):
    class Keep(AbstractHook):
        def after_epoch_profile(self, epoch_id, profile, streams):
            profiles.append({name: len(times) for name, times in profile.items()})
            assert all(seconds >= 0 for times in profile.values() for seconds in times)

    profiles = []
    train(tmp_path, Look(), Keep(), val_data=make_data(8), max_epochs=2)
    assert len(profiles) == 2
    for profile in profiles:
        assert profile["eval_batch_train"] == profile["read_batch_train"] == 3
        assert profile["eval_batch_valid"] == profile["read_batch_valid"] == 2
        assert profile["after_batch_hooks_train"] == 3
    assert torch.is_grad_enabled()


def _train_mixed(directory):
    best = hooks.SaveBest(model=None)
    trainer = make_trainer(
        hooks=[ComputeStats(["loss"]), best],
        train_data=make_data(16, shuffle=True),
        val_data=make_data(8),
        max_epochs=2,
        seed=1,
        run_dir=directory,
    )
    best._model = trainer.run.model
    trainer.train()
    return best._best_value, trainer.run.metrics.all_latest()


@pytest.mark.slow
def test_two_ranks_share_the_zeroth_epoch(tmp_path):
    alone = _train_mixed(tmp_path / "alone")
    for best, metrics in on_ranks(_train_mixed, 2, tmp_path / "ranks"):
        assert best == pytest.approx(alone[0], rel=1e-5)
        assert metrics == pytest.approx(alone[1], rel=1e-5)
    assert (tmp_path / "ranks" / "model_best.pth").is_file()
