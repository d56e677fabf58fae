"""``mmengine.registry.root``: the registries that those of all projects are children of."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from hookloop_mmengine.registry.build_functions import (
    build_model_from_cfg,
    build_runner_from_cfg,
    build_scheduler_from_cfg,
)
from hookloop_mmengine.registry.registry import Factory, Registry

# Our own classes are not registered where they are defined: a registry imports them on the first
# lookup, so that importing it alone is quick and makes no import cycle.


def _public(module: ModuleType) -> Mapping[str, Factory]:
    offered = {name: getattr(module, name) for name in module.__all__}
    # A package may also offer the registry itself.
    return {name: one for name, one in offered.items() if not isinstance(one, Registry)}


def _hooks() -> Mapping[str, Factory]:
    from hookloop_mmengine import hooks

    return _public(hooks)


def _runner_classes() -> Mapping[str, Factory]:
    from hookloop_mmengine import runner

    return _public(runner)


def _runners() -> Mapping[str, Factory]:
    from hookloop_mmengine.runner import Runner

    return {"Runner": Runner}


def _optim_classes() -> Mapping[str, Factory]:
    from hookloop_mmengine import optim

    return _public(optim)


def _datasets() -> Mapping[str, Factory]:
    from hookloop_mmengine import dataset

    return _public(dataset)


def _evaluators() -> Mapping[str, Factory]:
    from hookloop_mmengine import evaluator

    return _public(evaluator)


def _visualizers() -> Mapping[str, Factory]:
    from hookloop_mmengine import visualization

    return _public(visualization)


def _torch_optimizers() -> Mapping[str, Factory]:
    import torch.optim

    return {
        name: found
        for name, found in vars(torch.optim).items()
        if isinstance(found, type) and issubclass(found, torch.optim.Optimizer)
    }


def _torch_modules() -> Mapping[str, Factory]:
    import torch.nn

    from hookloop_mmengine import model

    layers = {name: found for name, found in vars(torch.nn).items() if isinstance(found, type)}
    return {**layers, **_public(model)}


def _samplers() -> Mapping[str, Factory]:
    import torch.utils.data as data

    names = ("BatchSampler", "RandomSampler", "SequentialSampler", "WeightedRandomSampler")
    # MMEngine's own samplers are in its package of datasets.
    return {**{name: getattr(data, name) for name in names}, **_datasets()}


def _functions() -> Mapping[str, Factory]:
    from hookloop_mmengine.dataset import collate

    names = ("default_collate", "pseudo_collate", "worker_init_fn")
    return {name: getattr(collate, name) for name in names}


RUNNERS = Registry("runner", build_func=build_runner_from_cfg).with_fallback(_runners)
RUNNER_CONSTRUCTORS = Registry("runner constructor")
LOOPS = Registry("loop")
HOOKS = Registry("hook").with_fallback(_hooks)
LOG_PROCESSORS = Registry("log processor").with_fallback(_runner_classes)
OPTIMIZERS = Registry("optimizer").with_fallback(_torch_optimizers)
OPTIM_WRAPPERS = Registry("optim_wrapper").with_fallback(_optim_classes)
OPTIM_WRAPPER_CONSTRUCTORS = Registry("optimizer wrapper constructor").with_fallback(_optim_classes)
PARAM_SCHEDULERS = Registry(
    "parameter scheduler", build_func=build_scheduler_from_cfg
).with_fallback(_optim_classes)
DATASETS = Registry("dataset").with_fallback(_datasets)
DATA_SAMPLERS = Registry("data sampler").with_fallback(_samplers)
TRANSFORMS = Registry("transform")
MODELS = Registry("model", build_func=build_model_from_cfg).with_fallback(_torch_modules)
MODEL_WRAPPERS = Registry("model wrapper")
WEIGHT_INITIALIZERS = Registry("weight initializer")
BATCH_AUGMENTS = Registry("batch augment")
TASK_UTILS = Registry("task util")
METRICS = Registry("metric").with_fallback(_evaluators)
EVALUATOR = Registry("evaluator").with_fallback(_evaluators)
VISUALIZERS = Registry("visualizer").with_fallback(_visualizers)
VISBACKENDS = Registry("vis_backend").with_fallback(_visualizers)
FUNCTIONS = Registry("function").with_fallback(_functions)
INFERENCERS = Registry("inferencer")
