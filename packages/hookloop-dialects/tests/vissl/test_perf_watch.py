"""The times of the parts of an iteration."""

from tests.tiny import make_trainer
from tests.vissl.phases import train

from hookloop_dialects.vissl import ClassyHook
from hookloop_dialects.vissl.utils.perf_stats import PerfStats


class Watch(ClassyHook):
    on_start = on_step = on_phase_end = on_end = ClassyHook._noop

    def __init__(self):
        super().__init__()
        self.stats = PerfStats()

    def on_phase_start(self, task):
        task.perf_stats = self.stats


def test_each_part_is_timed_once_per_iteration(tmp_path):
    hook = Watch()
    train(tmp_path, hook, max_epochs=2)
    counts = {name: metric.n for name, metric in hook.stats._host_stats.items()}
    # Six training iterations, two validation batches. The hook is there only from the first phase
    # on, so the first sample is read before the watch begins.
    assert counts == {
        "forward": 8, "loss_compute": 8, "backward": 6, "optimizer_step": 6,
        "train_step_total": 6, "read_sample": 5,
    }  # fmt: skip


def test_without_such_a_hook_nothing_is_timed(tmp_path):
    class Quiet(ClassyHook):
        on_start = on_phase_start = on_step = on_phase_end = ClassyHook._noop

        def on_end(self, task):
            assert task.perf_stats is None
            task.perf_stats = None

    trainer = make_trainer(hooks=[Quiet()], run_dir=tmp_path / "run")
    trainer.train()
    assert [hook.name for hook in trainer.run.hooks] == ["dialect:vissl", "quiet"]
