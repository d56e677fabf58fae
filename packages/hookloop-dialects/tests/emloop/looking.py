"""What several tests of emloop's dialect use."""

from tests.tiny import make_trainer

from hookloop_dialects.emloop import AbstractHook, hooks


class Look(AbstractHook):
    """Notes what ``note`` returns for each batch."""

    def __init__(self, note=lambda stream, data: stream):
        super().__init__()
        self.note = note
        self.seen = []

    def after_batch(self, stream_name, batch_data):
        self.seen.append(self.note(stream_name, batch_data))


def train(tmp_path, *some, **options):
    """Train one epoch without emloop's zeroth one."""
    trainer = make_trainer(
        hooks=[*some, hooks.SkipZerothEpoch()], **({"run_dir": tmp_path / "run"} | options)
    )
    trainer.train()
    return trainer
