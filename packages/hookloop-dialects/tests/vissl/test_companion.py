"""VISSL's phases, counters and losses."""

import copy

import pytest
import torch
from tests.ranks import on_ranks
from tests.tiny import make_classes, make_classifier, make_data, make_trainer
from tests.vissl.phases import tracing, train

from hookloop.engine.hook import Hook
from hookloop.hooks import SaveCheckpoint
from hookloop_dialects.vissl import ClassyHook
from hookloop_dialects.vissl.classy_vision.losses import ClassyLoss
from hookloop_dialects.vissl.companion import VisslCompanion


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
    make_classifier(hooks=[hook], setup={"config": config}, seed=1, **data).train()
    return hook.value


@pytest.mark.slow
def test_meters_measure_the_samples_of_all_processes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    alone = _measured()
    assert on_ranks(_measured, 2) == [alone] * 2


class Listed(torch.nn.Module):
    """Returns its outputs in a list, as VISSL's models do."""

    def __init__(self, outputs=1):
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.outputs = torch.nn.Linear(4, 3), outputs

    def forward(self, inputs):
        return [self.layer(inputs)] * self.outputs


class Entropy(ClassyLoss):
    def forward(self, output, target):
        return torch.nn.functional.cross_entropy(output, target)


class Quiet(ClassyHook):
    """A hook of ClassyVision; with one of VISSL's events it is one of VISSL."""

    on_start = on_phase_start = on_step = on_phase_end = on_end = ClassyHook._noop


class Seeing(Quiet):
    def on_forward(self, task):
        self.seen = task.last_batch.model_output


@pytest.mark.parametrize("loss", [torch.nn.functional.cross_entropy, torch.nn.CrossEntropyLoss(),
                                  Entropy()])  # fmt: skip
def test_a_single_output_is_taken_out_of_its_list_before_the_loss(tmp_path, loss):
    hook, model = Seeing(), Listed()
    parts = {"loss": loss, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1)}
    make_classifier(model=model, hooks=[hook], run_dir=tmp_path / "run", **parts).train()
    bare, listed = Listed().layer, make_classes()
    optimizer = torch.optim.SGD(bare.parameters(), lr=0.1)
    for inputs, targets in listed:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(bare(inputs), targets).backward()
        optimizer.step()
    assert torch.equal(bare.weight, model.layer.weight)
    assert hook.seen.shape == (4, 3)


@pytest.mark.parametrize(("outputs", "hook"), [(2, Seeing), (1, Quiet)])
def test_several_outputs_and_those_of_classyvision_stay_in_their_list(tmp_path, outputs, hook):
    def first(output, target):
        assert isinstance(output, list) and len(output) == outputs
        return torch.nn.functional.cross_entropy(output[0], target)

    model = Listed(outputs)
    parts = {"loss": first, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1), "metrics": {}}
    make_classifier(model=model, hooks=[hook()], run_dir=tmp_path / "run", **parts).train()


def test_a_step_decides_itself_what_its_output_is(tmp_path):
    hook = Seeing()

    def step(run, batch):
        output = run.model(batch[0])
        return {"loss": output.square().mean(), "output": [output]}

    make_trainer(hooks=[hook], step=step, run_dir=tmp_path / "run").train()
    assert isinstance(hook.seen, list)


@pytest.mark.slow
def test_outputs_in_a_list_train_on_ranks(tmp_path):
    first, second = on_ranks(_train_listed, 2, tmp_path)
    assert torch.equal(first, second)


def _train_listed(tmp_path):
    model = Listed()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    parts = {"hooks": [Seeing()], "run_dir": tmp_path / "run"}
    make_classifier(model=model, optimizer=optimizer, **parts).train()
    return model.layer.weight.detach()


def test_times_that_hooks_add_are_not_counted_twice(tmp_path):
    class Times(Quiet):
        def on_update(self, task):
            task.batch_time.append(1.0)

        def on_loss_and_meter(self, task):
            if not task.train:
                task.batch_time.append(2.0)

        def on_phase_end(self, task):
            self.times = list(task.batch_time)

    hook = Times()
    train(tmp_path, hook, max_epochs=1)
    assert hook.times == [1.0] * 3 + [2.0]


def test_a_hook_that_sets_done_training_ends_the_run_after_the_epoch(tmp_path):
    class Early(Quiet):
        def on_phase_end(self, task):
            assert not task.done_training()
            if task.train_phase_idx == 1 and not task.train:
                task.done_training = lambda: True

    trainer = train(tmp_path, Early(), max_epochs=5)
    assert (trainer.run.progress.epoch, trainer.run.progress.iter) == (2, 6)
    assert trainer.run.outcome.status == "stopped"
    assert "done_training" in trainer.run.outcome.reason
