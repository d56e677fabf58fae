import pytest
import torch
from tests.ranks import on_ranks
from tests.tiny import make_data, make_model, make_trainer, record, weights
from torch.optim import lr_scheduler

from hookloop.errors import HookError
from hookloop.hooks import StepSchedules, Unfreeze
from hookloop.testing import assert_resumes_exactly


def changed(run, before):
    now = run.model.state_dict()
    return {name for name, value in before.items() if not torch.equal(now[name], value)}


def train(hook, model=None, **options):
    model = model or make_model()
    before = weights(model)
    seen, calls = record(["after_update"], lambda run: sorted(changed(run, before)))
    make_trainer(model=model, hooks=[hook, seen], max_epochs=2, **options).train()
    return model, [names for _, names in calls]


BIASES, FIRST = ["0.bias", "2.bias"], ["0.bias", "0.weight", "2.bias"]
ALL = ["0.bias", "0.weight", "2.bias", "2.weight"]


@pytest.mark.parametrize("rates", [None, 1e-3, {4: 0.1}])
def test_each_step_thaws_its_part(rates):
    hook = Unfreeze({2: "0.*", 4: "*"}, rates, first="*.bias")
    model, seen = train(hook)
    assert seen == [BIASES] * 2 + [FIRST] * 2 + [ALL] * 2
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_steps_in_epochs():
    _, seen = train(Unfreeze({"1 epoch": "*"}, first="*.bias"))
    assert seen == [BIASES] * 3 + [ALL] * 3


def test_what_the_model_has_frozen_thaws_and_is_added_to_the_optimizer():
    model = make_model()
    model[0].requires_grad_(False)
    optimizer = torch.optim.SGD(model[2].parameters(), lr=0.1)
    _, seen = train(Unfreeze({3: "0.weight"}, {3: 0.01}), model, optimizer=optimizer)
    assert seen == [["2.bias", "2.weight"]] * 3 + [["0.weight", "2.bias", "2.weight"]] * 3
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.01]
    assert not model[0].bias.requires_grad  # In no step.


def test_a_run_that_ends_early_leaves_the_model_as_it_was():
    model = make_model()
    model[0].requires_grad_(False)
    train(Unfreeze({100: "0.*"}), model)
    assert not model[0].weight.requires_grad
    model, _ = train(Unfreeze({100: "0.*"}, first="2.*"))
    assert model[0].weight.requires_grad


def test_a_second_training_continues():
    model = make_model()
    trainer = make_trainer(model=model, hooks=[Unfreeze({4: "0.*"}, 0.01, first="2.*")])
    trainer.train()
    before = weights(model)
    trainer.train(max_epochs=2)
    assert changed(trainer.run, before) == set(ALL)
    assert len(trainer.run.optimizer.param_groups) == 2


@pytest.mark.parametrize("rates", [None, {"1 epoch": 1e-3, 5: 1e-2}])
def test_a_resume_is_exact_with_groups_and_schedules(rates):
    def make(**options):
        model = make_model()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
        return make_trainer(
            model=model, optimizer=optimizer, schedule=lr_scheduler.CosineAnnealingLR(optimizer, 9),
            hooks=[Unfreeze({"1 epoch": "0.weight", 5: "*"}, rates, first="2.*"), StepSchedules()],
            max_epochs=3, **options,
        )  # fmt: skip

    assert_resumes_exactly(make, stop_at=(1, 4, 7))


def test_norms_wait_for_their_step():
    torch.manual_seed(0)
    body = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8))
    model = torch.nn.Sequential(body, torch.nn.Linear(8, 1))
    train(Unfreeze({4: "0.*"}, first="1.*", norms="eval"), model, val_data=make_data(4))
    assert int(model[0][1].num_batches_tracked) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"steps": {}}, "steps is empty"),
        ({"steps": {1: "*"}, "rates": {2: 0.1}}, "none of the steps 1"),
        ({"steps": {1: "*"}, "rates": 0.0}, "must be positive"),
        ({"steps": {"1 min": "*"}}, "counts iterations or epochs"),
    ],
)
def test_wrong_arguments_are_rejected(options, words):
    with pytest.raises(HookError, match=words):
        Unfreeze(**options)


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        (lambda: Unfreeze({1: "*"}), "nothing is frozen"),
        (lambda: Unfreeze({1: "0.wieght"}, first="2.*"), "Did you mean '0.weight'"),
        (lambda: Unfreeze({1: "0.*", 2: "0.bias"}, first="2.*"), "'2' thaws nothing"),
    ],
)
def test_what_cannot_work_is_rejected_at_the_start(hook, words):
    with pytest.raises(HookError, match=words):
        make_trainer(hooks=[hook()]).train()


def weights_of_rank(parallel):
    model = make_model()
    model[0].requires_grad_(False)
    hook = Unfreeze({2: "0.*"}, 0.01)
    trainer = make_trainer(
        model=model, optimizer=torch.optim.SGD(model[2].parameters(), 0.05), hooks=[hook],
        max_epochs=2, parallel=parallel,
    )  # fmt: skip
    trainer.train()
    return trainer.run.with_model(lambda: [p.detach().clone() for p in model.parameters()])


@pytest.mark.slow
@pytest.mark.parametrize("parallel", ["replicated", "sharded"])
def test_ranks_train_what_one_process_does(parallel):
    alone = weights_of_rank("auto")
    for of_rank in on_ranks(weights_of_rank, 2, parallel):
        for one, other in zip(of_rank, alone, strict=True):
            torch.testing.assert_close(one, other)
