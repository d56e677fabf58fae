"""emloop's events at our mount points."""

import pytest
import torch
from tests.emloop.looking import Look, train
from tests.tiny import make_data, make_trainer

from hookloop.engine.hook import Hook
from hookloop_dialects.emloop import AbstractHook, TrainingTerminated, hooks
from hookloop_dialects.emloop.adapter import EmloopAdapter, adapt


class Events(AbstractHook):
    """Notes every event with what identifies it."""

    def __init__(self, events, stop=None):
        super().__init__()
        self.events = events
        self.stop = stop

    def note(self, *event):
        self.events.append(event)
        if event == self.stop:
            raise TrainingTerminated("enough")

    def before_training(self):
        self.note("before_training")

    def after_batch(self, stream_name, batch_data):
        self.note("batch", stream_name)

    def after_epoch(self, epoch_id, epoch_data):
        self.note("epoch", epoch_id, *epoch_data)

    def after_epoch_profile(self, epoch_id, profile, streams):
        self.note("profile", epoch_id, *streams)

    def after_training(self, success):
        self.note("after_training", success)


EPOCH = [("batch", "train")] * 3 + [("batch", "valid")]


def ended(number):
    return [("epoch", number, "train", "valid"), ("profile", number, "train", "valid")]


def test_the_events_of_two_epochs_and_the_zeroth(tmp_path):
    events = []
    make_trainer(
        hooks=[Events(events)], val_data=make_data(4), max_epochs=2, run_dir=tmp_path / "run"
    ).train()
    assert events == [
        ("before_training",),
        *EPOCH, *ended(0),
        *EPOCH, *ended(1),
        *EPOCH, *ended(2),
        ("after_training", True),
    ]  # fmt: skip


def test_an_evaluation_is_an_epoch_of_its_own(tmp_path):
    events = []
    trainer = make_trainer(
        hooks=[Events(events)], data={"test": make_data(8)}, run_dir=tmp_path / "run"
    )
    trainer.test()
    assert events == [
        ("before_training",),
        ("batch", "test"), ("batch", "test"),
        ("epoch", 0, "test"), ("profile", 0, "test"),
        ("after_training", True),
    ]  # fmt: skip


def test_terminating_in_a_batch_ends_the_epoch_at_once(tmp_path):
    events, later = [], []
    trainer = train(tmp_path, Events(events, stop=("batch", "train")), Events(later), max_epochs=9)
    assert events == [("before_training",), ("batch", "train"), ("after_training", True)]
    assert later == [("before_training",), ("after_training", True)]
    assert (trainer.run.outcome.status, trainer.run.outcome.reason) == ("stopped", "enough")


def test_terminating_after_an_epoch_lets_the_others_finish_it(tmp_path):
    events, later = [], []
    train(tmp_path, Events(events, stop=("epoch", 1, "train")), Events(later), max_epochs=9)
    ending = [("epoch", 1, "train"), ("profile", 1, "train"), ("after_training", True)]
    assert events[-3:] == later[-3:] == ending


def test_another_error_in_an_epoch_fails_the_run(tmp_path):
    class Fail(AbstractHook):
        def after_epoch(self, epoch_id, epoch_data):
            raise RuntimeError("broken")

    events = []
    with pytest.raises(RuntimeError, match="broken"):
        train(tmp_path, Fail(), Events(events))
    assert events[-1] == ("after_training", False)
    assert "epoch" not in [event[0] for event in events]


def test_after_training_hears_of_a_failure_and_only_after_a_beginning(tmp_path):
    class Fail(Hook):
        def after_train_iter(self, run):
            raise RuntimeError("broken")

    class FailEarly(AbstractHook):
        def before_training(self):
            raise RuntimeError("too early")

        def after_training(self, success):
            raise AssertionError("it never began")

    events = []
    with pytest.raises(RuntimeError, match="broken"):
        train(tmp_path, Events(events), Fail())
    assert events[-1] == ("after_training", False)
    with pytest.raises(RuntimeError, match="too early"):
        train(tmp_path, FailEarly(), run_dir=tmp_path / "early")


def test_every_microbatch_is_a_batch(tmp_path):
    hook = Look(lambda stream, data: data["targets"].shape)
    train(tmp_path, hook, train_data=make_data(20), accumulate=2)
    assert hook.seen == [(4, 1)] * 5


def test_a_hook_belongs_to_one_main_loop(tmp_path):
    hook = Look()
    trainer = train(tmp_path, hook, val_data=make_data(4))
    trainer.validate()  # The same loop, again.
    with pytest.raises(ValueError, match="belongs to a main loop already"):
        train(tmp_path, hook, run_dir=tmp_path / "other")


def test_only_a_hook_that_may_end_the_training_allows_a_run_without_limit():
    class Unknown(AbstractHook):
        def after_batch(self, **_): ...

    ends = [
        EmloopAdapter(hook).ends_training
        for hook in (Unknown(), hooks.StopAfter(epochs=1), hooks.LogVariables())
    ]
    assert ends == [True, True, False]


def test_a_hook_that_natives_stand_for_is_made_of_them():
    assert [hook.name for hook in adapt(hooks.SkipZerothEpoch())] == ["skip_zeroth_epoch"]
    (adapted,) = adapt(Look())
    assert isinstance(adapted, EmloopAdapter)


def test_a_resume_in_the_middle_of_an_epoch_loses_nothing(tmp_path):
    from hookloop.hooks import SaveCheckpoint

    def make_hooks(out):
        return [
            hooks.ComputeStats([{"loss": ["mean", "max"]}]),
            hooks.WriteCSV(output_dir=str(out)),
            hooks.StopOnPlateau(long_term=9, short_term=3, variable="loss", stream="train"),
            hooks.StopAfter(iterations=100),
            SaveCheckpoint(every="2 iters", keep=None),
        ]

    whole = tmp_path / "whole"
    train(tmp_path, *make_hooks(whole), max_epochs=3, run_dir=whole)
    parts = tmp_path / "parts"
    train(tmp_path, *make_hooks(parts), max_epochs=3, max_iters=4, run_dir=parts)
    again = make_hooks(parts)
    train(tmp_path, *again, max_epochs=3, run_dir=parts, resume=True)
    assert (parts / "training.csv").read_text() == (whole / "training.csv").read_text()
    assert again[3]._iters_done == 9
    assert len(again[2]._saved_loss) == 3


def test_a_model_that_a_hook_holds_learns_to_save(tmp_path):
    model = torch.nn.Linear(4, 1)
    hook = hooks.SaveLatest(model=model)
    train(tmp_path, hook, model=model)
    assert hook._model is not model
    assert (tmp_path / "run" / "model_latest.pth").is_file()


def test_the_profile_comes_in_the_form_that_a_hook_takes(tmp_path):
    class Older(AbstractHook):
        def after_epoch_profile(self, epoch_id, profile, train_stream_name, extra_streams):
            seen.append((epoch_id, train_stream_name, extra_streams))

    class Oldest(AbstractHook):
        def after_epoch_profile(self, epoch_id, profile, extra_streams):
            seen.append((epoch_id, extra_streams))

    class Any(AbstractHook):
        def after_epoch_profile(self, **given):
            seen.append(sorted(given))

    seen = []
    train(tmp_path, Older(), Oldest(), Any(), hooks.SkipZerothEpoch(), val_data=make_data(4))
    assert seen == [(1, "train", ["valid"]), (1, ["valid"]), ["epoch_id", "profile", "streams"]]
