"""Attributes of the foreign systems that are the loop's own."""

import pytest
from tests.tiny import make_trainer

from hookloop.errors import HookError
from hookloop_dialects.imix.trainer import EngineFacade
from hookloop_dialects.pointrix.trainer import TrainerFacade
from hookloop_dialects.vissl import Task


@pytest.mark.parametrize(
    ("kind", "name", "way"),
    [
        (Task, "phases", "num_train_phases"),
        (Task, "train_step", "Trainer"),
        (Task, "mixup_transform", "run.batch"),
        (Task, "clip_grad_norm", "clip_norm="),
        (TrainerFacade, "validation", "run.validate"),
        (EngineFacade, "loss_fn", "trainer.output"),
    ],
)
def test_setting_it_is_rejected_with_what_to_use(kind, name, way):
    facade = kind(make_trainer().run)
    facade.hook = "mine"
    with pytest.raises(
        HookError, match=rf"'mine' sets {kind.role}\.{name}, .*Use .*{way}.* instead"
    ):
        setattr(facade, name, None)


def test_it_is_not_offered_either():
    task = Task(make_trainer().run)
    assert not hasattr(task, "phases")
    with pytest.raises(HookError, match="task.phases.*num_train_phases") as error:
        task.phases  # noqa: B018 - the question itself
    assert "phases" not in str(error.value).partition("Available:")[2].split(", ")
