"""VISSL's phases, counters and losses."""

import copy

import pytest
import torch
from tests.ranks import on_ranks
from tests.tiny import make_classes, make_classifier, make_data, make_trainer
from tests.unit.dialects.vissl.phases import tracing, train

from hookloop.core.hook import Hook
from hookloop.dialects.vissl import ClassyHook
from hookloop.dialects.vissl.companion import VisslCompanion
from hookloop.hooks import SaveCheckpoint


def test_the_indices_of_phases_count_as_in_vissl(tmp_path):
    hook = tracing(lambda task: (task.train_phase_idx, task.eval_phase_idx), ["on_phase_start"])
    make_trainer(
        hooks=[hook], val_data=make_data(4), max_epochs=3, run_dir=tmp_path / "run"
    ).train()
    assert [call[1:] for call in hook.calls] == [(0, -1), (0, 0), (1, 0), (1, 1), (2, 1), (2, 2)]


def test_counters_continue_in_the_middle_of_a_resumed_phase(tmp_path):
    class Break(Hook):
        def before_train_iter(self, run):
            if run.progress.iter == 4:
                raise RuntimeError("interrupted")

    def run(name, *others, **options):
        hook = tracing(
            lambda task: (task.phase_idx, task.train_phase_idx, task.local_iteration_num),
            ["on_step"],
        )
        hooks = [hook, SaveCheckpoint(every="2 iters"), *others]
        try:
            train(tmp_path / name, *hooks, max_epochs=2, **options)
        except RuntimeError:
            assert others
        return [call[1:] for call in hook.calls]

    first = run("parts", Break())
    assert first + run("parts", resume=True) == run("whole")
    assert first[-1] == (2, 1, 7)


def test_losses_are_multiplied_by_the_samples_of_their_batch(tmp_path):
    events = ["on_phase_end", "on_update"]  # The second says that the hook is one of VISSL.
    hook = tracing(lambda task: (len(task.losses), sum(task.losses)), events)
    plain = tracing(lambda task: (len(task.losses), sum(task.losses)), ["on_phase_end"])
    data = {"train_data": make_data(10), "val_data": make_data(6)}
    trainer = train(tmp_path, hook, plain, max_epochs=1, **data)
    (_, batches, _), (_, val_batches, total) = [call for call in hook.calls if call[0] == events[0]]
    first, last = make_data(6)
    losses = [
        torch.nn.functional.mse_loss(trainer.run.model(x), y).item() for x, y in (first, last)
    ]
    assert plain.calls[1] == ("on_phase_end", 2, pytest.approx(sum(losses), rel=1e-5))
    assert (batches, val_batches) == (3, 2)
    inputs, targets = next(iter(make_data(6, batch_size=6)))
    loss = torch.nn.functional.mse_loss(trainer.run.model(inputs), targets)
    assert total == pytest.approx(6 * loss.item(), rel=1e-5)


def test_losses_can_be_replaced_and_a_phase_begins_without():
    companion, run = VisslCompanion(), make_trainer().run
    run.batch, run.loss = (torch.ones(4, 1), torch.ones(4)), torch.tensor(0.5)
    companion.after_loss(run)
    assert companion.losses("") == [2.0]
    run.loss = torch.tensor([1.0, 3.0])  # Not reduced: the mean counts.
    companion.after_loss(run)
    assert companion.losses("") == [2.0, 8.0]
    companion.reset_losses([7.0])
    assert companion.losses("") == [7.0]
    companion.before_val_epoch(run)
    assert companion.losses("") == [] and companion.phase_idx == 0
    run.loss = None
    companion.after_loss(run)
    assert companion.losses("") == []


def test_an_average_goes_back_with_the_state():
    companion, run = VisslCompanion(), make_trainer().run
    before = companion.average(run, 0.5, None).module[0].weight.clone()
    saved = copy.deepcopy(companion.state_dict())
    with torch.no_grad():
        run.model[0].weight.add_(1.0)
    companion.average(run, 0.5, None).update(run.model)
    assert not torch.equal(companion.ema_model.module[0].weight, before)
    companion.load_state_dict(saved)
    assert torch.equal(companion.average(run, 0.5, None).module[0].weight, before)


def test_the_state_is_restored():
    companion, run = VisslCompanion(), make_trainer().run
    companion.before_train_epoch(run)
    companion.before_val_epoch(run)
    companion.after_val_iter(run)
    again = VisslCompanion()
    again.load_state_dict(companion.state_dict())
    assert (again.phase_idx, again.train_phase_idx) == (1, 0)
    assert again.local_iteration(run) == companion.local_iteration(run) == 2


class LastValues(ClassyHook):
    on_start = on_phase_start = on_step = on_end = ClassyHook._noop

    def on_phase_end(self, task):
        self.value = task.meters[0].value
        self.losses = len(task.losses)


def _measured():
    hook = LastValues()
    config = {"meters": {"accuracy": {"topk": [1, 2]}}}
    data = {"train_data": make_classes(11, 4), "val_data": make_classes(11, 4)}
    make_classifier(hooks=[hook], config=config, seed=1, **data).train()
    return hook.value


@pytest.mark.slow
def test_meters_measure_the_samples_of_all_processes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    alone = _measured()
    assert on_ranks(_measured, 2) == [alone] * 2
