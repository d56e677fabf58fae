"""``mmengine.registry``: classes by name, looked up from child to parent.

Each project of MMEngine has child registries of these. A name that a child does not have is looked
up in its parent, and ``scope.Name`` names the child of a scope.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Self, TypeVar, cast

from hookloop.dialects.mmengine.missing import MISSING, message_for
from hookloop.dialects.mmengine.utils.misc import get_object_from_string
from hookloop.errors import nearest

Factory = Callable[..., object]
T = TypeVar("T", bound=Factory)
BuildFunc = Callable[..., object]


def build_from_cfg(
    cfg: Mapping[str, object], registry: Registry, default_args: Mapping[str, object] | None = None
) -> object:
    """Build the object of a config dict: ``type`` names it, the rest are its arguments."""
    # Not `isinstance(..., Mapping)`: a Config only behaves like one.
    if not hasattr(cfg, "keys"):
        raise TypeError(f"cfg should be a dict, ConfigDict or Config, but got {type(cfg)}")
    arguments = {**(default_args or {}), **cfg}
    if "type" not in arguments:
        raise KeyError(f'`cfg` or `default_args` must contain the key "type", but got {cfg}')
    # `_scope_` chooses the registry and is not an argument of the class.
    scope = cast("str | None", arguments.pop("_scope_", None))
    kind = arguments.pop("type")
    factory = registry.require(kind, scope) if isinstance(kind, str) else kind
    if not callable(factory):
        raise TypeError(f"type must be a str or valid type, but got {type(kind)}")
    # A visualizer, for example, is found again by its name, so it must not be made twice.
    get_instance = getattr(factory, "get_instance", None)
    if "name" in arguments and callable(get_instance):
        return get_instance(**arguments)
    return factory(**arguments)


class Registry:
    """Classes and functions of one kind, by name.

    Args:
        name: The kind, for example ``hook``.
        build_func: Builds a config dict; by default the function of the parent.
        parent: The registry to search for names that are not in this one.
        scope: The name of the project; by default the package that creates this registry.
        locations: Modules that register names; they are imported when a name is not found.
    """

    def __init__(
        self,
        name: str,
        build_func: BuildFunc | None = None,
        parent: Registry | None = None,
        scope: str | None = None,
        locations: list[str] | None = None,
    ) -> None:
        self._name = name
        self._module_dict: dict[str, Factory] = {}
        self._children: dict[str, Registry] = {}
        # MMEngine finds the scope this way too, so projects do not name it.
        self.scope = scope or _scope_of(sys._getframe(1).f_globals["__name__"])
        self.parent = parent
        # Not `if parent`: an empty registry has the length 0 and would count as False.
        inherited: BuildFunc = parent.build_func if parent is not None else build_from_cfg
        self.build_func: BuildFunc = build_func or inherited
        self._fallback: Callable[[], Mapping[str, Factory]] = dict
        self._locations = list(locations or ())
        if parent is not None:
            parent._children[self.scope] = self

    def __len__(self) -> int:
        return len(self._module_dict)

    def __contains__(self, key: object) -> bool:
        # Through `get`, because most names are imported only when they are looked up.
        return isinstance(key, str) and self.get(key) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._module_dict)

    def __repr__(self) -> str:
        return f"Registry({self._name}: {', '.join(self._module_dict)})"

    @property
    def name(self) -> str:
        """The kind."""
        return self._name

    @property
    def module_dict(self) -> dict[str, Factory]:
        """The classes that are registered here, by name."""
        return self._module_dict

    @property
    def children(self) -> dict[str, Registry]:
        """The child registries, by scope."""
        return self._children

    def with_fallback(self, fallback: Callable[[], Mapping[str, Factory]]) -> Self:
        """Set a function that returns further names; it is called only when a lookup needs it."""
        self._fallback = fallback
        return self

    def get(self, key: str) -> Factory | None:
        """Return the class of a name, or None."""
        if not isinstance(key, str):
            raise TypeError(f"The key argument of `Registry.get` must be a str, got {type(key)}")
        found = self._module_dict.get(key)
        if found is not None:
            return found
        scope, _, rest = key.partition(".")
        # Before the locations: a name with a scope must not import the modules of another one.
        if rest and scope == self.scope:
            return self.get(rest)
        if rest and scope in self._children:
            return self._children[scope].get(rest)
        while found is None and self._locations:
            import_module(self._locations.pop(0))  # Popped first: the module may look up names.
            found = self._module_dict.get(key)
        found = found or self._fallback().get(key)
        if found is not None:
            return found
        if self.parent is not None:
            return self.parent.get(key)
        # A dumped config names classes by their path: type='torch.nn.Linear'.
        return cast("Factory | None", get_object_from_string(key)) if rest else None

    def find(self, key: str, scope: str | None = None) -> Factory | None:
        """Return the class of a name in a project; by default that of the default scope."""
        current = DefaultScope.get_current_instance()
        name = scope or (current.scope_name if current is not None else None)
        # The children of all projects hang on the root, not on the registry that is asked.
        root = self
        while root.parent is not None:
            root = root.parent
        # The scope of the root has no child registry.
        if name is None or name == root.scope:
            return self.get(key)
        if name not in root._children and find_spec(name) is not None:
            # Importing a project's module `registry` creates its registries, as in MMEngine.
            import_module(f"{name}.registry")
        return root._children.get(name, self).get(key) or self.get(key)

    def require(self, key: str, scope: str | None = None) -> Factory:
        """Return the class of a name; the error for an unknown name suggests the nearest one."""
        found = self.find(key, scope)
        if found is None and key in MISSING:
            raise KeyError(message_for(key))
        if found is None:
            names = sorted({*self._module_dict, *self._fallback()})
            raise KeyError(
                f"{key} is not in the {self.scope}::{self._name} registry.{nearest(key, names)} "
                "Is the module that registers it imported, for example with custom_imports?"
            )
        return found

    def build(self, cfg: object, *args: object, **kwargs: object) -> object:
        """Build the object of a config dict."""
        return self.build_func(cfg, *args, **kwargs, registry=self)

    def register_module(
        self,
        name: str | list[str] | None = None,
        force: bool = False,
        module: T | None = None,
    ) -> T | Callable[[T], T]:
        """Register a class or function; without ``module``, return a decorator."""
        if not isinstance(force, bool):
            raise TypeError(f"force must be a boolean, but got {type(force)}")
        if not (name is None or isinstance(name, str | list)):
            raise TypeError(f"name must be None, an instance of str, or a list, got {type(name)}")
        if module is not None:
            return self._register(module, name, force=force)

        def decorate(module: T) -> T:
            return self._register(module, name, force=force)

        return decorate

    def _register(self, module: T, name: str | list[str] | None, *, force: bool) -> T:
        if not callable(module):
            raise TypeError(f"module must be Callable, but got {type(module)}")
        names = [name] if isinstance(name, str) else name or [module.__name__]
        for entry in names:
            existing = self._module_dict.get(entry)
            if existing is not None and not force:
                raise KeyError(
                    f"{entry} is already registered in {self._name} at {existing.__module__}"
                )
            self._module_dict[entry] = module
        return module


def _scope_of(module: str) -> str:
    # This module stands in for MMEngine's, whose name configs use as a scope.
    return "mmengine" if module == __name__ else module.partition(".")[0]


def build_runner_from_cfg(
    cfg: Mapping[str, object], registry: Registry | None = None, **_: object
) -> object:
    """Build a runner of the class that ``runner_type`` names; `Runner` by default."""
    from hookloop.dialects.mmengine.runner import Runner

    # Not `type`: the whole config is the argument of a runner.
    kind = cfg.get("runner_type", "Runner")
    runner_class = RUNNERS.get(cast("str", kind)) or Runner
    return cast("type[Runner]", runner_class).from_cfg(cfg)


def build_model_from_cfg(
    cfg: object, registry: Registry, default_args: Mapping[str, object] | None = None
) -> object:
    """Build a model; a list of configs makes a sequential model."""
    if isinstance(cfg, list):
        from torch.nn import Module, Sequential

        built = [build_from_cfg(entry, registry, default_args) for entry in cfg]
        return Sequential(*cast("list[Module]", built))
    return build_from_cfg(cast("Mapping[str, object]", cfg), registry, default_args)


def build_scheduler_from_cfg(
    cfg: Mapping[str, object], registry: Registry, default_args: Mapping[str, object] | None = None
) -> object:
    """Build a parameter scheduler; ``convert_to_iter_based`` turns its epochs into iterations."""
    arguments = {**(default_args or {}), **cfg}
    # Not an argument of the schedulers themselves.
    epoch_length = arguments.pop("epoch_length", None)
    if arguments.pop("convert_to_iter_based", False):
        kind = arguments.pop("type")
        scheduler_class = registry.require(kind) if isinstance(kind, str) else kind
        return scheduler_class.build_iter_from_epoch(epoch_length=epoch_length, **arguments)  # type: ignore[attr-defined]
    return build_from_cfg(arguments, registry)


# Our own classes are not registered where they are defined: a registry imports them on the first
# lookup, so that importing it alone is quick and makes no import cycle.


def _public(module: ModuleType) -> Mapping[str, Factory]:
    return {name: getattr(module, name) for name in module.__all__}


def _hooks() -> Mapping[str, Factory]:
    from hookloop.dialects.mmengine import hooks

    return _public(hooks)


def _runner_classes() -> Mapping[str, Factory]:
    from hookloop.dialects.mmengine import runner

    return _public(runner)


def _optim_classes() -> Mapping[str, Factory]:
    from hookloop.dialects.mmengine import optim

    return _public(optim)


def _datasets() -> Mapping[str, Factory]:
    from hookloop.dialects.mmengine import dataset

    return _public(dataset)


def _evaluators() -> Mapping[str, Factory]:
    from hookloop.dialects.mmengine import evaluator

    return _public(evaluator)


def _visualizers() -> Mapping[str, Factory]:
    from hookloop.dialects.mmengine import visualization

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

    from hookloop.dialects.mmengine import model

    layers = {name: found for name, found in vars(torch.nn).items() if isinstance(found, type)}
    return {**layers, **_public(model)}


def _samplers() -> Mapping[str, Factory]:
    import torch.utils.data as data

    names = ("BatchSampler", "RandomSampler", "SequentialSampler", "WeightedRandomSampler")
    # MMEngine's own samplers are in its package of datasets.
    return {**{name: getattr(data, name) for name in names}, **_datasets()}


RUNNERS = Registry("runner", build_func=build_runner_from_cfg)
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
FUNCTIONS = Registry("function")
INFERENCERS = Registry("inferencer")


class DefaultScope:
    """The project whose registries are searched first."""

    _current: DefaultScope | None = None

    def __init__(self, name: str, scope_name: str) -> None:
        self.instance_name, self.scope_name = name, scope_name

    @classmethod
    def get_instance(cls, name: str, **kwargs: str) -> DefaultScope:
        """Create a scope and make it the current one."""
        cls._current = cls(name, kwargs.get("scope_name", "mmengine"))
        return cls._current

    @classmethod
    def get_current_instance(cls) -> DefaultScope | None:
        """Return the current scope."""
        return cls._current


def init_default_scope(scope: str) -> None:
    """Make a scope the current one."""
    DefaultScope.get_instance(scope, scope_name=scope)


def register_all_modules(init_default_scope: bool = True) -> None:
    """Do nothing: names are imported when they are looked up."""
