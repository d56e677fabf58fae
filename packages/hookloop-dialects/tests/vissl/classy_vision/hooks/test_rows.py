"""The hooks of ClassyVision that are built from native ones."""

import pytest
import torch
from tests.tiny import make_model, weights
from tests.vissl.phases import train

from hookloop import hooks as native
from hookloop.engine.hook import Hook
from hookloop.errors import HookError
from hookloop_dialects.vissl import build_hook
from hookloop_dialects.vissl.classy_vision import hooks as classy


def test_the_average_is_classys_and_is_used_in_test_phases_only(tmp_path):
    decay, used = 0.5, []
    mine = weights(make_model())

    class Follow(Hook):
        """The average as ClassyVision defines it, by hand."""

        priority = "LOWEST"

        def after_train_iter(self, run):
            for name, value in run.model.state_dict().items():
                mine[name] = decay * mine[name] + (1 - decay) * value

        def after_val_iter(self, run):
            used.append(all(torch.allclose(v, mine[n]) for n, v in weights(run.model).items()))

    hook = build_hook({"name": "ema_model_weights", "decay": decay})
    trainer = train(tmp_path, hook, Follow(), max_epochs=2)
    assert used == [True, True]
    assert not torch.allclose(trainer.run.model[0].weight, mine["0.weight"])


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        (classy.ModelComplexityHook(), native.CountComplexity),
        (classy.PreciseBatchNormHook(num_samples=8), native.RecomputeBatchNorm),
        (classy.ProfilerHook(), native.ProfileOperators),
        (classy.ProgressBarHook(), native.ShowProgress),
        (classy.TorchscriptHook("."), native.ExportModel),
        (classy.ExponentialMovingAverageModelHook(0.9), native.AverageWeights),
    ],
)
def test_each_row_has_its_native_hook(row, kind):
    (hook,) = row.native_hooks()
    assert type(hook) is kind


@pytest.mark.parametrize("decay", [0, 0.25, 1])
def test_the_share_of_the_new_weights_is_exact_at_the_ends_too(decay):
    (hook,) = classy.ExponentialMovingAverageModelHook(decay).native_hooks()
    assert hook.share(1) == hook.share(1000) == 1 - decay


@pytest.mark.parametrize(
    "arguments", [{"decay": -0.1}, {"decay": 1.1}, {"decay": 1, "device": "x"}]
)
def test_wrong_arguments_of_the_average_are_rejected(arguments):
    with pytest.raises(AssertionError):
        classy.ExponentialMovingAverageModelHook(**arguments)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_the_traced_model_is_in_evaluation_mode(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Dropout(0.9))
    train(tmp_path, classy.TorchscriptHook(str(tmp_path)), model=model, max_epochs=1)
    traced = torch.jit.load(str(tmp_path / "torchscript.pt"))
    inputs = torch.ones(2, 4)
    assert torch.equal(traced(inputs), model.eval()(inputs))


@pytest.mark.parametrize("arguments", [{"use_trace": False}, {"device": "gpu"}])
def test_scripting_and_other_devices_are_rejected(arguments):
    with pytest.raises(HookError, match="can only trace the model on the CPU"):
        classy.TorchscriptHook(".", **arguments)
