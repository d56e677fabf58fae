"""What several tests of iMIX's dialect use."""

from tests.tiny import make_trainer

from hookloop_dialects.imix import HookBase

STAGES = [
    "before_train", "before_train_epoch", "before_train_iter", "after_train_iter",
    "after_train_epoch", "after_train",
]  # fmt: skip


def tracing(note=lambda trainer: (trainer.iter, trainer.inner_iter, trainer.epoch)):
    def at(stage):
        return lambda self: self.calls.append((stage, *note(self.trainer)))

    kind = type("Trace", (HookBase,), {stage: at(stage) for stage in STAGES})
    kind.calls = []
    return kind()


def train(tmp_path, *hooks, **options):
    trainer = make_trainer(hooks=hooks, run_dir=tmp_path / "run", **options)
    trainer.train()
    return trainer
