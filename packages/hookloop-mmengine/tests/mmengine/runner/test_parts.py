"""Loaders, optimizers and schedulers from config dicts."""

import pytest
import torch
from tests.mmengine.parts import Numbers, make_loader
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler

from hookloop_mmengine.dataset import DefaultSampler, default_collate, pseudo_collate
from hookloop_mmengine.optim import ExponentialLR, OptimWrapper, OptimWrapperDict
from hookloop_mmengine.registry import DATASETS, FUNCTIONS
from hookloop_mmengine.runner.parts import (
    LoopSettings,
    as_schedules,
    build_all_schedulers,
    build_dataloader,
    build_schedulers,
    build_wrapper,
    listed_schedulers,
    read_train_cfg,
)


@pytest.mark.parametrize(
    ("cfg", "settings"),
    [
        ({"max_epochs": 3}, LoopSettings(True, 3, 1, 1)),
        ({"by_epoch": True, "max_epochs": 3, "val_interval": 2}, LoopSettings(True, 3, 2, 1)),
        ({"type": "EpochBasedTrainLoop", "max_epochs": 3}, LoopSettings(True, 3, 1, 1)),
        ({"by_epoch": False, "max_iters": 9}, LoopSettings(False, 9, 1000, 1)),
        ({"type": "IterBasedTrainLoop", "max_iters": 9, "val_begin": 4},
         LoopSettings(False, 9, 1000, 4)),
        ({"max_epochs": 9, "dynamic_intervals": [(7, 1)]}, LoopSettings(True, 9, 1, 1, [(7, 1)])),
    ],
    ids=str,
)  # fmt: skip
def test_train_cfg_names_the_loop(cfg, settings):
    before = dict(cfg)
    assert read_train_cfg(cfg) == settings
    assert cfg == before


@pytest.mark.parametrize(
    ("cfg", "error", "message"),
    [
        ({"type": "EpochBasedTrainLop", "max_epochs": 1}, ValueError, "'EpochBasedTrainLoop'"),
        ({"type": "MyLoop", "max_epochs": 1}, ValueError, "'MyLoop' is not offered.*into a hook"),
        ({"max_iters": 3}, ValueError, "train_cfg needs max_epochs, an integer, not None"),
        ({"by_epoch": False, "max_iters": "3"}, ValueError, "needs max_iters, an integer, not '3'"),
        ({"max_epochs": 1, "max_iters": 3}, TypeError, "train_cfg does not take max_iters"),
    ],
)
def test_a_wrong_train_cfg_is_rejected(cfg, error, message):
    with pytest.raises(error, match=message):
        read_train_cfg(cfg)


@pytest.fixture(autouse=True)
def registered():
    DATASETS.register_module(name="ToyNumbers", module=Numbers)
    yield
    del DATASETS.module_dict["ToyNumbers"]


def test_a_loader_is_built():
    cfg = {
        "dataset": {"type": "ToyNumbers", "scale": 2.0},
        "sampler": {"type": "DefaultSampler", "shuffle": False},
        "batch_size": 3,
    }
    loader = build_dataloader(cfg, seed=5)
    assert [len(batch["inputs"]) for batch in loader] == [3, 1]
    assert loader.collate_fn is pseudo_collate
    assert isinstance(loader.sampler, DefaultSampler)
    assert loader.sampler.seed == 5
    assert cfg["dataset"]["type"] == "ToyNumbers"


def test_a_loader_object_is_used_as_it_is():
    loader = make_loader()
    assert build_dataloader(loader) is loader


def test_a_sampler_of_ones_own_seed():
    cfg = {"dataset": Numbers(), "sampler": {"type": "DefaultSampler", "seed": 9}}
    assert build_dataloader(cfg, seed=5).sampler.seed == 9
    cfg["sampler"].pop("seed")
    drawn = {build_dataloader(cfg, seed=5, diff_rank_seed=True).sampler.seed for _ in range(3)}
    assert drawn != {5}


def test_a_batch_sampler_takes_sampler_and_batch_size():
    cfg = {
        "dataset": Numbers(),
        "sampler": {"type": "DefaultSampler", "shuffle": False},
        "batch_sampler": {"type": "BatchSampler", "drop_last": True},
        "batch_size": 3,
    }
    loader = build_dataloader(cfg)
    assert isinstance(loader.batch_sampler, BatchSampler)
    assert [len(batch["inputs"]) for batch in loader] == [3]
    own = BatchSampler(SequentialSampler(Numbers()), 2, False)
    assert build_dataloader({"dataset": Numbers(), "batch_sampler": own}).batch_sampler is own


def test_a_dataset_is_initialized_fully():
    class Lazy(Numbers):
        ready = False

        def full_init(self):
            self.ready = True

    DATASETS.register_module(name="ToyLazy", module=Lazy)
    try:
        assert build_dataloader({"dataset": {"type": "ToyLazy"}, "batch_size": 1}).dataset.ready
    finally:
        del DATASETS.module_dict["ToyLazy"]


def _first(samples, key):
    return samples[0][key]


def test_collate_functions_are_named_or_given():
    options = {"dataset": Numbers(), "batch_size": 2}
    named = build_dataloader({**options, "collate_fn": {"type": "default_collate"}})
    assert named.collate_fn.func is default_collate
    assert (
        build_dataloader({**options, "collate_fn": default_collate}).collate_fn is default_collate
    )
    FUNCTIONS.register_module(name="toy_first", module=_first)
    try:
        own = {"type": "toy_first", "key": "inputs"}
        assert float(next(iter(build_dataloader({**options, "collate_fn": own})))) == 0
    finally:
        del FUNCTIONS.module_dict["toy_first"]
    with pytest.raises(KeyError, match="collate_fn: there is no function 'zebra'"):
        build_dataloader({**options, "collate_fn": {"type": "zebra"}})


def test_workers_are_seeded_when_there_is_a_seed():
    options = {"dataset": Numbers(), "batch_size": 2, "num_workers": 1}
    keywords = build_dataloader(options, seed=7).worker_init_fn.keywords
    assert keywords == {"num_workers": 1, "rank": 0, "seed": 7}
    assert build_dataloader(options).worker_init_fn is None
    assert build_dataloader({**options, "worker_init_fn": print}, seed=7).worker_init_fn is print


def make_wrapper(lr=0.1):
    return OptimWrapper(torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=lr))


def test_a_wrapper_is_given_described_or_several():
    model, wrapper = torch.nn.Linear(1, 1), make_wrapper()
    assert build_wrapper(wrapper, model) is wrapper
    built = build_wrapper({"optimizer": {"type": "Adam", "lr": 0.1}}, model)
    assert isinstance(built.optimizer, torch.optim.Adam)
    own = build_wrapper({"type": "OptimWrapper", "optimizer": wrapper.optimizer}, model)
    assert own.optimizer is wrapper.optimizer
    assert isinstance(build_wrapper({"a": wrapper, "b": make_wrapper()}, model), OptimWrapperDict)


@pytest.mark.parametrize(
    ("wrapper", "error", "message"),
    [
        (3, TypeError, "optim_wrapper should be an OptimWrapper or a dict, not 3"),
        ({"a": {"optimzer": {}}}, ValueError, "several wrappers by name must be OptimWrapper"),
        ({"optimizer": {"type": "SDG"}}, KeyError, "SDG is not in the.*'SGD'"),
    ],
)
def test_a_wrong_wrapper_is_rejected(wrapper, error, message):
    with pytest.raises(error, match=message):
        build_wrapper(wrapper, torch.nn.Linear(1, 1))


BY_EPOCH, BY_ITER = LoopSettings(True, 3, 1, 1), LoopSettings(False, 9, 1, 1)


@pytest.mark.parametrize(
    ("cfg", "settings", "end", "by_epoch"),
    [
        ({}, BY_EPOCH, 3, True),
        ({"end": 2}, BY_EPOCH, 2, True),
        ({"by_epoch": False}, BY_EPOCH, 12, False),
        ({"by_epoch": False}, BY_ITER, 9, False),
        ({"by_epoch": True}, BY_ITER, 1, True),
        ({"convert_to_iter_based": True}, BY_EPOCH, 12, False),
    ],
    ids=str,
)
def test_a_schedule_ends_with_the_training(cfg, settings, end, by_epoch):
    entry = {"type": "ExponentialLR", "gamma": 0.5, **cfg}
    (scheduler,) = build_schedulers(entry, make_wrapper(), settings, epoch_length=4)
    assert (scheduler.end, scheduler.by_epoch) == (end, by_epoch)


def test_schedulers_are_a_list_of_objects_or_dicts():
    wrapper = make_wrapper()
    own = ExponentialLR(wrapper, gamma=0.5)
    both = build_schedulers([own, {"type": "StepLR", "step_size": 1}], wrapper, BY_EPOCH, 4)
    assert both[0] is own
    assert type(both[1]).__name__ == "StepLR"
    with pytest.raises(TypeError, match="should be a `_ParamScheduler` or dict, but got 3"):
        build_schedulers([3], wrapper, BY_EPOCH, 4)


def test_several_optimizers_share_schedulers_or_have_them_by_name():
    wrappers = OptimWrapperDict(a=make_wrapper(), b=make_wrapper(0.2))
    halve = {"type": "ExponentialLR", "gamma": 0.5}
    shared = build_all_schedulers(halve, wrappers, BY_EPOCH, 4)
    assert {name: one.base_values for name, (one,) in shared.items()} == {"a": [0.1], "b": [0.2]}
    named = {"a": [halve, halve], "b": {"type": "StepLR", "step_size": 2}}
    found = build_all_schedulers(named, wrappers, BY_EPOCH, 4)
    assert [len(found["a"]), len(found["b"])] == [2, 1]
    assert [type(scheduler).__name__ for scheduler in listed_schedulers(found)] == [
        "ExponentialLR", "ExponentialLR", "StepLR",
    ]  # fmt: skip
    assert build_all_schedulers(None, wrappers, BY_EPOCH, 4) == []
    assert len(build_all_schedulers(halve, make_wrapper(), BY_EPOCH, 4)) == 1


def test_native_schedules_step_at_the_right_time():
    wrapper = make_wrapper()
    cfgs = [
        {"type": "ExponentialLR", "gamma": 0.5},
        {"type": "ExponentialLR", "gamma": 0.5, "by_epoch": False},
        {"type": "ReduceOnPlateauLR", "monitor": "acc", "rule": "greater"},
    ]
    schedules = as_schedules(build_schedulers(cfgs, wrapper, BY_EPOCH, 4))
    assert list(schedules) == ["0", "1", "2"]
    assert schedules["0"].counts("epochs")
    assert schedules["1"].counts("iters")
    assert schedules["2"].metric == "val/acc"


def test_batches_of_a_built_loader_are_those_of_torch():
    built = build_dataloader({"dataset": Numbers(), "batch_size": 2, "collate_fn": default_collate})
    plain = DataLoader(Numbers(), batch_size=2)
    for ours, theirs in zip(built, plain, strict=True):
        assert torch.equal(ours["inputs"], theirs["inputs"])
