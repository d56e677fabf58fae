"""Validations: MMEngine's own loop, and loops of a project."""

from mmengine.registry import LOOPS
from mmengine.runner import ValLoop
from tests.downstream.graft import toy

from hookloop import dialects


@LOOPS.register_module()
class TwiceLoop(ValLoop):
    """A validation loop of a project's own."""

    def run(self):
        super().run()
        return super().run()


def test_a_validation_loop_of_a_project_is_used(tmp_path):
    seen = []
    for name in ((), ("mmengine",)):
        hook = toy.Record()
        with dialects.graft(*name):
            directory = tmp_path / str(len(name))
            toy.make_runner(directory, hook, val_cfg={"type": "TwiceLoop"}).train()
        seen.append([call for call in hook.seen if call[0] == "after_val_epoch"])
    assert seen[0] == seen[1]
    assert len(seen[0]) == 6


def test_metrics_stand_beside_the_checkpoint(tmp_path):
    from hookloop import CheckpointStore

    hook = toy.Record()
    with dialects.graft("mmengine"):
        toy.make_runner(tmp_path, hook, length=1).train()
    entry = CheckpointStore(tmp_path).index.entries["epoch_1.pth"]
    metrics = next(call[-1] for call in hook.seen if call[0] == "after_val_epoch")
    assert entry.metrics["val/points/accuracy"] == metrics["points/accuracy"]
