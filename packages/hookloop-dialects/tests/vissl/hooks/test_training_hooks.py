"""VISSL's hooks that change or check the training."""

import pytest
import torch
from tests.tiny import make_data, make_trainer
from tests.vissl.phases import train

from hookloop import hooks as native
from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop_dialects.vissl import hooks as vissl


def test_a_loss_that_is_not_finite_fails_at_once(tmp_path):
    class Spoil(Hook):
        priority = "HIGHEST"

        def after_loss(self, run):
            if run.progress.iter == 2:
                run.loss = run.loss * float("nan")

    trainer = make_trainer(hooks=[vissl.CheckNanLossHook(), Spoil()], run_dir=tmp_path / "run")
    with pytest.raises(FloatingPointError, match="iteration 3"):
        trainer.train()


def test_an_output_that_is_not_finite_is_kept_and_the_run_continues(tmp_path):
    class Spoil(Hook):
        priority = "HIGHEST"

        def after_forward(self, run):
            if run.progress.iter == 1 and run.phase == "train":
                run.output = run.output + float("inf") * torch.tensor([[0.0], [1], [1], [1]]) * 0

    trainer = train(tmp_path, vissl.CheckNanModelOutputHook(1), Spoil(), max_epochs=1)
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"rank0_model_output.pth", "rank0_input_sample.pth"} <= names
    assert trainer.run.outcome.status == "completed"


def test_parameters_are_frozen_for_their_first_iterations(tmp_path):
    seen = []

    class Look(Hook):
        def after_update(self, run):
            seen.append(run.model[0].weight.grad is None)

    config = {"MODEL": {"TEMP_FROZEN_PARAMS_ITER_MAP": [["module.0.weight", 2]]}}
    train(tmp_path, vissl.FreezeParametersHook(), Look(), max_epochs=1, setup={"config": config})
    assert seen == [True, True, False]


def test_classes_without_labels_are_masked_in_test_phases(tmp_path):
    seen = []

    class Look(Hook):
        def after_val_iter(self, run):
            seen.append(run.output.isinf().any(0).tolist())

    inputs = torch.randn(8, 4)
    data = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(inputs, torch.tensor([0, 2] * 4)), batch_size=4
    )
    model = torch.nn.Linear(4, 3)
    train(
        tmp_path,
        vissl.ModelOutputMaskHook(),
        Look(),
        model=model,
        train_data=data,
        val_data=data,
        loss=torch.nn.functional.cross_entropy,
        max_epochs=1,
    )
    assert seen == [[False, True, False]] * 2


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        (vissl.GradClipHook(norm_type=1, max_norm=3), native.ClipGradients),
        (vissl.CheckNanLossHook(), native.StopOnNaN),
        (vissl.CudaSynchronizeHook(), native.SynchronizeCuda),
        (vissl.ProfilingHook({"START_ITERATION": 2}), native.ProfileOperators),
    ],
)
def test_each_row_has_its_native_hook(row, kind):
    (hook,) = row.native_hooks()
    assert type(hook) is kind


def test_a_frozen_name_that_does_not_exist_is_an_error(tmp_path):
    config = {"MODEL": {"TEMP_FROZEN_PARAMS_ITER_MAP": [["0.wieght", 2]]}}
    with pytest.raises(AssertionError, match="no parameter is named .*0.wieght"):
        train(tmp_path, vissl.FreezeParametersHook(), setup={"config": config})


def test_the_sampler_of_a_phase_gets_its_index(tmp_path):
    class Sampler(torch.utils.data.SequentialSampler):
        def set_epoch(self, epoch):
            seen.append(epoch)

    seen = []
    dataset = make_data().dataset
    data = torch.utils.data.DataLoader(dataset, batch_size=4, sampler=Sampler(dataset))
    train(tmp_path, vissl.SetDataSamplerEpochHook(), train_data=data, max_epochs=2)
    assert [epoch for epoch in seen if epoch in (0, 2)] == seen[:2] == [0, 2]


def test_what_is_not_offered_names_the_native_hook(tmp_path):
    with pytest.raises(HookError, match="Set it, or use hookloop.hooks.CountComplexity"):
        train(tmp_path, vissl.SSLModelComplexityHook())
    with pytest.raises(HookError, match=r"list has no 'targets'.*MaskOutputs"):
        train(
            tmp_path / "mask",
            vissl.ModelOutputMaskHook(),
            val_data=list(make_data(4)),
            max_epochs=1,
        )
