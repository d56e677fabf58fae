"""Last batch, optimizer and meters in VISSL's form."""

import pytest
import torch
from tests.tiny import make_trainer

from hookloop.errors import HookError
from hookloop_dialects.vissl import ClassyHook
from hookloop_dialects.vissl.views import LastBatch, Meter, OptimizerView


def test_what_a_hook_puts_into_the_last_batch_takes_effect(tmp_path):
    class Halve(ClassyHook):
        on_start = on_phase_start = on_step = on_phase_end = on_end = ClassyHook._noop

        def on_loss_and_meter(self, task):
            task.last_batch.loss = task.last_batch.loss * 0

    trainer = make_trainer(hooks=[Halve()], run_dir=tmp_path / "run")
    before = [parameter.clone() for parameter in trainer.run.model.parameters()]
    trainer.train()
    for one, other in zip(before, trainer.run.model.parameters(), strict=True):
        assert torch.equal(one, other)


def make_last(batch, output=None):
    run = make_trainer().run
    run.batch, run.output = batch, output
    return LastBatch(run), run


def test_a_sample_is_the_batch_or_a_pair_by_name():
    pair = (torch.ones(2, 1), torch.zeros(2))
    last, _ = make_last(pair)
    assert last.sample == {"input": pair[0], "target": pair[1]}
    assert last.target is pair[1]
    mapping = {"input": 1, "target": 2, "id": 3}
    last, _ = make_last(mapping)
    assert last.sample is mapping and last.target == 2
    assert last.step_data == {}


def test_an_output_among_other_values_is_replaced_alone():
    last, run = make_last(None, {"output": 1, "loss": 2})
    assert last.model_output == last.output == 1
    last.model_output = 5
    assert run.output == {"output": 5, "loss": 2}
    last, run = make_last(None, 1)
    last.output = 7
    assert run.output == 7


def test_an_option_is_a_list_where_groups_differ():
    weights = [torch.nn.Parameter(torch.zeros(1)) for _ in range(2)]
    optimizer = torch.optim.SGD([{"params": weights[:1], "lr": 0.5}, {"params": weights[1:]}], lr=1)
    view = OptimizerView(optimizer)
    assert view.options_view.lr == [0.5, 1] and view.options_view.weight_decay == 0
    assert not hasattr(view.options_view, "params")
    assert view.param_groups is optimizer.param_groups


def test_a_hook_must_not_make_the_update():
    with pytest.raises(HookError, match="the loop makes the update.*on_backward"):
        OptimizerView(make_trainer().run.optimizer).step()


def test_a_meter_has_its_value_under_its_name():
    meter = Meter("accuracy", 0.5)
    assert (meter.name, meter.value) == ("accuracy", {"accuracy": 0.5})
