"""iMIX's counters and the steps of its log buffer."""

from tests.imix.tracing import train
from tests.tiny import make_data, make_trainer

from hookloop.hooks import SaveCheckpoint
from hookloop_dialects.imix import HookBase, PriorityStatus, get_log_buffer


def test_the_log_buffer_passes_numbers_on_and_steps_with_the_iterations(tmp_path):
    class Put(HookBase):
        def after_train_iter(self):
            get_log_buffer().put_scalar("double", 2 * self.trainer.iter)
            get_log_buffer().put_scalars(one=1, smoothing_hint=False)

    class Take(HookBase):
        level = PriorityStatus.LOW

        def after_train_iter(self):
            buffer = self.trainer.log_buffer
            seen.append((dict(sorted(buffer.latest.items())), buffer.iter))

        def after_train_epoch(self):
            seen.append(dict(self.trainer.log_buffer.latest))
            seen.append(self.trainer.log_buffer.history("double").values())

    seen = []
    trainer = train(tmp_path, Put(), Take())
    assert [sorted(found) for found, _ in seen[:3]] == [["data_time", "double", "loss", "one"]] * 3
    assert [(found["double"], step) for found, step in seen[:3]] == [(0, 0), (2, 1), (4, 2)]
    assert seen[3] == {}
    assert seen[4] == [(0.0, 0), (2.0, 1), (4.0, 2)]
    assert trainer.run.metrics.all_latest()["train/double"] == 4


def test_counters_continue_after_a_resume(tmp_path):
    class Note(HookBase):
        def before_train(self):
            trainer = self.trainer
            seen.append((trainer.start_iter, trainer.start_epoch, trainer.log_buffer.iter))

        def after_train_iter(self):
            seen.append((self.trainer.iter, self.trainer.epoch, get_log_buffer().iter))

    seen = []
    train(tmp_path, Note(), SaveCheckpoint(), train_data=make_data(4))
    seen.clear()
    train(tmp_path, Note(), SaveCheckpoint(), train_data=make_data(4), max_epochs=2, resume=True)
    assert seen == [(1, 1, 1), (1, 1, 1)]


def test_the_loss_of_every_iteration_is_in_the_buffer(tmp_path):
    class Note(HookBase):
        def after_train(self):
            kept.extend(self.trainer.log_buffer.history("loss").values())

    kept = []
    trainer = train(tmp_path, Note(), max_epochs=2)
    assert [iteration for _, iteration in kept] == [0, 1, 2, 3, 4, 5]
    assert kept[-1][0] == trainer.run.metrics.all_latest()["train/loss"]


def test_a_validation_between_epochs_leaves_the_counters_alone(tmp_path):
    class Note(HookBase):
        def before_train_epoch(self):
            seen.append((self.trainer.iter, self.trainer.epoch, self.trainer.log_buffer.iter))

    seen = []
    make_trainer(
        hooks=[Note()], val_data=make_data(8), max_epochs=2, run_dir=tmp_path / "run"
    ).train()
    assert seen == [(0, 0, 0), (3, 1, 3)]
