"""What files import from ``classy_vision.tasks``."""

from hookloop import dialects
from hookloop.dialects.vissl import Task


def test_both_names_are_the_task_that_hooks_get():
    with dialects.alias("vissl"):
        from classy_vision.tasks import ClassificationTask, ClassyTask
    assert ClassyTask is ClassificationTask is Task
