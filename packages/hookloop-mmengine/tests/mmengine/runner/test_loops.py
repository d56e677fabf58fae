"""The loops under the names that hooks import."""

from hookloop import dialects
from hookloop_mmengine import loops as ours
from hookloop_mmengine.runner import loops


def test_the_names_are_mmengines():
    assert loops.BaseLoop is ours.LoopView
    for name in ("EpochBasedTrainLoop", "IterBasedTrainLoop", "TestLoop", "ValLoop"):
        assert getattr(loops, name) is getattr(ours, name)
        assert issubclass(getattr(loops, name), loops.BaseLoop)


def test_hook_files_import_them():
    with dialects.alias("mmengine"):
        from mmengine.runner import IterBasedTrainLoop
        from mmengine.runner.loops import EpochBasedTrainLoop
    assert EpochBasedTrainLoop is ours.EpochBasedTrainLoop
    assert IterBasedTrainLoop is ours.IterBasedTrainLoop
