"""Attributes of the task that are the loop's own."""

import pytest
from tests.tiny import make_trainer

from hookloop.dialects.vissl import Task
from hookloop.errors import HookError


@pytest.mark.parametrize(
    ("name", "way"),
    [("phases", "num_train_phases"), ("train_step", "Trainer"), ("mixup_transform", "run.batch")],
)
def test_setting_it_is_rejected_with_what_to_use(name, way):
    task = Task(make_trainer().run)
    task.hook = "mine"
    with pytest.raises(HookError, match=f"'mine' sets task.{name}, .*Use .*{way}.* instead"):
        setattr(task, name, None)


def test_it_is_not_offered_either():
    task = Task(make_trainer().run)
    assert not hasattr(task, "phases")
    with pytest.raises(HookError, match="asks for task.phases.*Use num_train_phases") as error:
        task.phases  # noqa: B018 - the question itself
    assert "phases" not in str(error.value).partition("Available:")[2].split(", ")
