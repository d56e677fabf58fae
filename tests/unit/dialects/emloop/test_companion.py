"""emloop's epochs on top of ours."""

import pytest
import torch
from tests.tiny import assert_same_bits, make_data, make_trainer
from tests.unit.dialects.emloop.looking import Look, train

from hookloop.dialects.emloop import AbstractHook, hooks
from hookloop.dialects.emloop.adapter import EmloopAdapter
from hookloop.dialects.emloop.companion import check_order
from hookloop.errors import HookError
from hookloop.hooks import SaveCheckpoint


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
    trainer = train(tmp_path, hook, val_data=make_data(4), test_data=make_data(4))
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
        ([hooks.LogVariables(["size"]), hooks.ComputeStats(["loss"])], False),
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
