"""What files import from ``classy_vision.tasks``."""

from hookloop import dialects
from hookloop_dialects.vissl import Task


def test_all_names_are_the_task_that_hooks_get():
    with dialects.alias("vissl"):
        from classy_vision.tasks import ClassificationTask, ClassyTask, FineTuningTask
        from classy_vision.tasks.classification_task import AmpType, LastBatchInfo
        from vissl.trainer.train_task import SelfSupervisionTask
    assert ClassyTask is ClassificationTask is FineTuningTask is SelfSupervisionTask is Task
    assert AmpType["PYTORCH"] is not AmpType.APEX
    assert LastBatchInfo(1, 2, 3, {}).step_data is None
