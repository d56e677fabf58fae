"""A frozen teacher."""

import pytest
import torch
from tests.tiny import make_classifier
from tests.vissl.learners import Encoder, views
from tests.vissl.phases import train

from hookloop.errors import HookError
from hookloop_dialects.vissl.config import AttrDict
from hookloop_dialects.vissl.hooks import DistillationHook
from hookloop_dialects.vissl.losses import distillation_loss as losses
from hookloop_dialects.vissl.models import building


@pytest.fixture
def teacher(tmp_path, monkeypatch):
    """The config of a registered model with its weights in a file."""

    def make(model, eager=False):
        monkeypatch.setattr(
            building, "MODEL_REGISTRY", {"teacher": lambda config, optimizer: model}
        )
        torch.save(model.state_dict(), tmp_path / "teacher.torch")
        weights = {"PARAMS_FILE": str(tmp_path / "teacher.torch")}
        section = {"BASE_MODEL_NAME": "teacher", "WEIGHTS_INIT": weights}
        return AttrDict({"TEACHER_MODEL": section, "eager_teacher_init": eager})

    return make


@pytest.mark.parametrize("eager", [True, False])
def test_scores_of_the_teacher_reach_the_loss(tmp_path, teacher, eager):
    model, loss = torch.nn.Linear(4, 3), losses.DistillationLoss()
    config = teacher(model, eager)
    trainer = make_classifier(hooks=[DistillationHook(config)], loss=loss, run_dir=tmp_path / "run")
    trainer.train()
    assert torch.equal(loss.teacher_logits, model(trainer.run.batch[0]))
    assert not model.training and not model.weight.requires_grad


class Dino(losses.DINODistillationLoss):
    teacher_num_crops = 1

    def forward(self, output, target):
        return (output[0][:4] - self.teacher_scores).square().sum()


class Msn(losses.MSNDistillationLoss):
    teacher_num_crops = 2

    def forward(self, output, target):
        return (output[1] - self.teacher_probs[1]).square().sum() + output[0].sum() * 0


class Swav(losses.SwAVDistillationLoss):
    use_two_crops_for_teacher = True

    def forward(self, output, target):
        assert self.teacher_prototypes.shape == (3, 8)
        return (output[1] - self.teacher_prototypes_scores).square().sum()


class Ibot(losses.IBOTDistillationLoss):
    use_teacher_prototypes = False

    def forward(self, output, target):
        return (output - self.teacher_scores).square().sum()


@pytest.mark.parametrize(("kind", "data"), [(Dino, "crops"), (Msn, "crops"), (Swav, "crops"),
                                            (Ibot, "views")])  # fmt: skip
def test_each_kind_of_loss_gets_what_it_compares(tmp_path, teacher, kind, data):
    hook = DistillationHook(teacher(Encoder()))
    parts = {"loss": kind(), "train_data": views(data), "val_data": None}
    trainer = train(tmp_path / "run", hook, model=Encoder(), max_epochs=1, **parts)
    assert trainer.run.outcome.status == "completed"


def test_a_loss_of_another_kind_and_a_teacher_without_weights_are_rejected(tmp_path, teacher):
    hook = DistillationHook(teacher(torch.nn.Linear(4, 1)))
    with pytest.raises(HookError, match="the loss is FunctionLoss.*DistillationLoss"):
        train(tmp_path / "a", hook)
    config = teacher(torch.nn.Linear(4, 1))
    config.TEACHER_MODEL.WEIGHTS_INIT.PARAMS_FILE = ""
    with pytest.raises(HookError, match="PARAMS_FILE"):
        train(tmp_path / "b", DistillationHook(config))
