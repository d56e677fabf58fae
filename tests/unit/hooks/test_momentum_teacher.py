import pytest
import torch
from tests.tiny import assert_same_bits, make_data, make_model, make_trainer, record

from hookloop.errors import HookError
from hookloop.hooks import MomentumTeacher, SaveCheckpoint


def step(run, batch):
    inputs, targets = batch
    with torch.no_grad():
        taught = MomentumTeacher.of(run)(inputs)
    output = run.model(inputs)
    return (output - targets).square().mean() + (output - taught).square().mean()


def test_the_teacher_follows_with_its_momentum(tmp_path):
    model, hook = make_model(), MomentumTeacher(momentum=0.9, final=None)
    seen, students = record(["after_update"], lambda run: run.model[0].weight.detach().clone())
    expected = model[0].weight.detach().clone()
    make_trainer(model=model, step=step, hooks=[hook, seen], run_dir=tmp_path).train()
    for _, student in students:
        expected = 0.9 * expected + 0.1 * student
    assert torch.allclose(hook.teacher[0].weight, expected)
    assert not hook.teacher.training
    assert not any(parameter.requires_grad for parameter in hook.teacher.parameters())


def test_the_momentum_moves_to_its_final_value_along_a_cosine(tmp_path):
    hook = MomentumTeacher(momentum=0.5, final=1.0)
    before = []
    trainer = make_trainer(step=step, hooks=[hook], max_iters=2, run_dir=tmp_path)
    trainer.on("before_train_iter")(lambda run: before.append(hook.teacher[0].weight.clone()))
    trainer.train()
    assert torch.equal(hook.teacher[0].weight, before[1])  # At the end it keeps all of its weights.
    assert hook.share_kept(0.5) == pytest.approx(0.75)


def test_a_part_of_the_model_can_be_the_student(tmp_path):
    hook = MomentumTeacher(module="0")
    make_trainer(hooks=[hook], run_dir=tmp_path).train()
    assert isinstance(hook.teacher, torch.nn.Linear)


def test_buffers_are_copied(tmp_path):
    model = torch.nn.Sequential(make_model(), torch.nn.BatchNorm1d(1))
    hook = MomentumTeacher(eval_mode=False)
    make_trainer(model=model, hooks=[hook], run_dir=tmp_path).train()
    assert torch.equal(hook.teacher[1].running_mean, model[1].running_mean)
    assert hook.teacher.training


def test_a_resumed_run_has_the_same_teacher(tmp_path):
    def train(run_dir, max_epochs, **options):
        hook = MomentumTeacher(momentum=0.9, final=None)
        trainer = make_trainer(
            step=step,
            hooks=[hook, SaveCheckpoint()],
            max_epochs=max_epochs,
            run_dir=run_dir,
            **options,
        )
        trainer.train()
        return trainer.run.model, hook.teacher

    straight = train(tmp_path / "a", 4)
    train(tmp_path / "b", 2)
    resumed = train(tmp_path / "b", 4, resume=True)
    assert_same_bits(straight[0], resumed[0])
    assert_same_bits(straight[1], resumed[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"momentum": 1.5}, "between 0 and 1"), ({"module": "head"}, "no module 'head'")],
)
def test_wrong_arguments_are_rejected(arguments, message, tmp_path):
    with pytest.raises(HookError, match=message):
        make_trainer(hooks=[MomentumTeacher(**arguments)], run_dir=tmp_path).train()


def test_a_run_without_a_teacher_is_rejected(tmp_path):
    with pytest.raises(HookError, match="no MomentumTeacher"):
        make_trainer(step=step, run_dir=tmp_path).train()


def test_a_run_of_unknown_length_cannot_follow_a_cosine(tmp_path):
    from hookloop.hooks import StopAfter

    hooks = [MomentumTeacher(), StopAfter(iterations=2)]
    with pytest.raises(HookError, match="length of the run is not known"):
        make_trainer(hooks=hooks, max_epochs=None, run_dir=tmp_path).train()


def test_a_checkpoint_is_tested_with_its_teacher(tmp_path):
    def trainer(**options):
        hooks = [MomentumTeacher(momentum=0.9), SaveCheckpoint()]
        data = {"data.test": make_data(4), "run_dir": tmp_path}
        return make_trainer(step=step, hooks=hooks, **data, **options)

    trained = trainer()
    trained.train()
    assert trainer(model=make_model(1), resume=True).test() == trained.test()
