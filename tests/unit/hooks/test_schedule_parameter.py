import pytest
import torch
from tests.tiny import make_model, make_trainer, record

from hookloop.errors import HookError, ModelError
from hookloop.hooks import SaveCheckpoint, ScheduleParameter


def values(tmp_path, hook, key="weight_decay", max_iters=5, optimizer_of=None, **options):
    model = make_model()
    optimizer = (optimizer_of or (lambda m: torch.optim.SGD(m.parameters(), lr=0.01)))(model)
    seen, calls = record(["before_update"], lambda run: run.optimizer.param_groups[-1][key])
    make_trainer(
        model=model,
        optimizer=optimizer,
        hooks=[hook, seen, SaveCheckpoint("2 iters")],
        max_iters=max_iters,
        run_dir=tmp_path,
        **options,
    ).train()
    return [value for _, value in calls]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0, 0.2, 0.4, 0.6, 0.8]),
        ({"over": 2}, [0, 0.5, 1, 1, 1]),
        ({"over": "1 epoch"}, [0, 1 / 3, 2 / 3, 1, 1]),
        ({"over": 4, "shape": "cosine"}, [0, 0.14645, 0.5, 0.85355, 1]),
        ({"over": 3, "shape": "constant"}, [0, 0, 0, 1, 1]),
    ],
)
def test_the_setting_goes_from_start_to_end(options, expected, tmp_path):
    hook = ScheduleParameter("weight_decay", start=0.0, end=1.0, **options)
    assert values(tmp_path, hook) == pytest.approx(expected, abs=1e-5)


def test_one_of_several_numbers_can_be_scheduled(tmp_path):
    hook = ScheduleParameter("betas.0", start=0.5, end=0.9, over=2)
    betas = values(tmp_path, hook, "betas", 3, lambda m: torch.optim.Adam(m.parameters()))
    assert betas == [(0.5, 0.999), (pytest.approx(0.7), 0.999), (pytest.approx(0.9), 0.999)]


def test_one_group_can_be_scheduled(tmp_path):
    def grouped(model):
        parameters = list(model.parameters())
        groups = [{"params": parameters[:2], "name": "body"}, {"params": parameters[2:]}]
        return torch.optim.SGD(groups, lr=0.01, momentum=0.3)

    of_others = ScheduleParameter("momentum", start=0.5, end=0.9, group="body")
    assert values(tmp_path / "a", of_others, "momentum", 2, grouped) == [0.3, 0.3]
    of_last = ScheduleParameter("momentum", start=0.5, end=0.9, over=1, group=1)
    assert values(tmp_path / "b", of_last, "momentum", 2, grouped) == [0.5, 0.9]


def test_a_resumed_run_continues_where_it_was(tmp_path):
    def hook():
        return ScheduleParameter("weight_decay", start=0.0, end=1.0, over=5)

    values(tmp_path, hook(), max_iters=2)
    assert values(tmp_path, hook(), resume=True)[-3:] == pytest.approx([0.4, 0.6, 0.8])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"parameter": "weight_deca"}, "Did you mean 'weight_decay'"),
        ({"optimizer": "defualt"}, "Did you mean 'default'"),
        ({"group": 3}, "no parameter group '3' among 1"),
        ({"shape": "cosin"}, "Did you mean 'cosine'"),
        ({"over": "3 min"}, "write iterations or epochs"),
        ({"over": "ages"}, "not an interval"),
    ],
)
def test_wrong_arguments_are_rejected(arguments, message, tmp_path):
    options = {"parameter": "weight_decay", "start": 0.0, "end": 1.0} | arguments
    with pytest.raises(HookError, match=message):
        values(tmp_path, ScheduleParameter(**options))


def test_several_optimizers_must_be_named(tmp_path):
    model = make_model()
    optimizers = {name: torch.optim.SGD(model.parameters(), lr=0.1) for name in "ab"}
    hook = ScheduleParameter("weight_decay", start=0, end=1)
    with pytest.raises(ModelError, match="single optimizer"):
        make_trainer(model=model, optimizer=optimizers, hooks=[hook], run_dir=tmp_path).train()
