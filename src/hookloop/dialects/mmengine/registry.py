"""``mmengine.registry``: names for classes, looked up upwards from child to parent.

MMEngine's projects keep a registry of their own under each of these; what is not found in a child
is looked for in its parent, and ``scope.Name`` names a child.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Self, TypeVar, cast

from hookloop.dialects.mmengine.missing import MISSING, message_for
from hookloop.errors import nearest

Made = Callable[..., object]
T = TypeVar("T", bound=Made)
BuildFunc = Callable[..., object]


def build_from_cfg(
    cfg: Mapping[str, object], registry: Registry, default_args: Mapping[str, object] | None = None
) -> object:
    """Build what a config dict describes: ``type`` names it, the rest are its arguments."""
    if not hasattr(cfg, "keys"):
        raise TypeError(f"cfg should be a dict, ConfigDict or Config, but got {type(cfg)}")
    arguments = {**(default_args or {}), **cfg}
    if "type" not in arguments:
        raise KeyError(f'`cfg` or `default_args` must contain the key "type", but got {cfg}')
    scope = cast("str | None", arguments.pop("_scope_", None))
    kind = arguments.pop("type")
    make = registry.require(kind, scope) if isinstance(kind, str) else kind
    if not callable(make):
        raise TypeError(f"type must be a str or valid type, but got {type(kind)}")
    shared = getattr(make, "get_instance", None)  # Of things that are found again by their name.
    if "name" in arguments and callable(shared):
        return shared(**arguments)
    return make(**arguments)


class Registry:
    """Names of one kind of thing.

    Args:
        name: The kind.
        build_func: How a config dict is built, if not as usual.
        parent: Where to look for what is not here.
        scope: The project's name; by default the package that makes this registry.
        locations: Modules that register; imported when a name is not found.
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
        self._module_dict: dict[str, Made] = {}
        self._children: dict[str, Registry] = {}
        self.scope = scope or _scope_of(sys._getframe(1).f_globals["__name__"])
        self.parent = parent
        inherited: BuildFunc = parent.build_func if parent else build_from_cfg
        self.build_func: BuildFunc = build_func or inherited
        self._fallback: Callable[[], Mapping[str, Made]] = dict
        self._locations = list(locations or ())
        if parent is not None:
            parent._children[self.scope] = self

    def __len__(self) -> int:
        return len(self._module_dict)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.get(key) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._module_dict)

    def __repr__(self) -> str:
        return f"Registry({self._name}: {', '.join(self._module_dict)})"

    @property
    def name(self) -> str:
        """The kind of thing."""
        return self._name

    @property
    def module_dict(self) -> dict[str, Made]:
        """What is registered here."""
        return self._module_dict

    @property
    def children(self) -> dict[str, Registry]:
        """The projects' registries below this one, by scope."""
        return self._children

    def filled(self, fallback: Callable[[], Mapping[str, Made]]) -> Self:
        """Add names that are looked up last, and imported only then."""
        self._fallback = fallback
        return self

    def get(self, key: str) -> Made | None:
        """Return what a name stands for, or None."""
        if not isinstance(key, str):
            raise TypeError(f"The key argument of `Registry.get` must be a str, got {type(key)}")
        found = self._module_dict.get(key)
        if found is not None:
            return found
        scope, _, rest = key.partition(".")
        if rest and scope == self.scope:
            return self.get(rest)
        if rest and scope in self._children:
            return self._children[scope].get(rest)
        while found is None and self._locations:
            import_module(self._locations.pop(0))
            found = self._module_dict.get(key)
        found = found or self._fallback().get(key)
        if found is not None or self.parent is None:
            return found
        return self.parent.get(key)

    def find(self, key: str, scope: str | None = None) -> Made | None:
        """Return what a name stands for in a project, by default that of the default scope."""
        current = DefaultScope.get_current_instance()
        name = scope or (current.scope_name if current is not None else None)
        root = self
        while root.parent is not None:
            root = root.parent
        if name is None or name == root.scope:
            return self.get(key)
        if name not in root._children and find_spec(name) is not None:
            import_module(f"{name}.registry")  # As there: a project's registries make themselves.
        return root._children.get(name, self).get(key) or self.get(key)

    def require(self, key: str, scope: str | None = None) -> Made:
        """Return what a name stands for; an unknown name is refused with the nearest one."""
        found = self.find(key, scope)
        if found is None and key in MISSING:
            raise KeyError(message_for(key))
        if found is None:
            known = sorted({*self._module_dict, *self._fallback()})
            raise KeyError(
                f"{key} is not in the {self.scope}::{self._name} registry.{nearest(key, known)} "
                "Is the module that registers it imported, for example with custom_imports?"
            )
        return found

    def build(self, cfg: object, *args: object, **kwargs: object) -> object:
        """Build what a config dict describes."""
        return self.build_func(cfg, *args, **kwargs, registry=self)

    def register_module(
        self,
        name: str | list[str] | None = None,
        force: bool = False,
        module: T | None = None,
    ) -> T | Callable[[T], T]:
        """Register a class or function, as a decorator or at once."""
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
        for one in names:
            taken = self._module_dict.get(one)
            if taken is not None and not force:
                raise KeyError(f"{one} is already registered in {self._name} at {taken.__module__}")
            self._module_dict[one] = module
        return module


def _scope_of(module: str) -> str:
    return "mmengine" if module == __name__ else module.partition(".")[0]


def build_runner_from_cfg(
    cfg: Mapping[str, object], registry: Registry | None = None, **_: object
) -> object:
    """Build a runner: of the type that ``runner_type`` names, if it names one."""
    from hookloop.dialects.mmengine.runner import Runner

    kind = cfg.get("runner_type", "Runner")
    make = RUNNERS.get(cast("str", kind)) or Runner
    return cast("type[Runner]", make).from_cfg(cfg)


def build_model_from_cfg(
    cfg: object, registry: Registry, default_args: Mapping[str, object] | None = None
) -> object:
    """Build a model; a list of configs makes a sequential one."""
    if isinstance(cfg, list):
        from torch.nn import Module, Sequential

        built = [build_from_cfg(one, registry, default_args) for one in cfg]
        return Sequential(*cast("list[Module]", built))
    return build_from_cfg(cast("Mapping[str, object]", cfg), registry, default_args)


def build_scheduler_from_cfg(
    cfg: Mapping[str, object], registry: Registry, default_args: Mapping[str, object] | None = None
) -> object:
    """Build a parameter scheduler; ``convert_to_iter_based`` chooses how it counts."""
    arguments = {**(default_args or {}), **cfg}
    epoch_length = arguments.pop("epoch_length", None)
    if arguments.pop("convert_to_iter_based", False):
        kind = arguments.pop("type")
        make = registry.require(kind) if isinstance(kind, str) else kind
        return make.build_iter_from_epoch(epoch_length=epoch_length, **arguments)  # type: ignore[attr-defined]
    return build_from_cfg(arguments, registry)


def _from(module: str) -> Callable[[], Mapping[str, Made]]:
    """Look names up in a module's ``__all__`` when they are first wanted."""

    def names() -> Mapping[str, Made]:
        loaded = import_module(module)
        return {name: getattr(loaded, name) for name in loaded.__all__}

    return names


def _torch_optimizers() -> Mapping[str, Made]:
    import torch.optim

    return {
        name: found
        for name, found in vars(torch.optim).items()
        if isinstance(found, type) and issubclass(found, torch.optim.Optimizer)
    }


def _torch_modules() -> Mapping[str, Made]:
    import torch.nn

    ours = _from("hookloop.dialects.mmengine.model")()
    return {**{k: v for k, v in vars(torch.nn).items() if isinstance(v, type)}, **ours}


def _samplers() -> Mapping[str, Made]:
    import torch.utils.data as data

    ours = _from("hookloop.dialects.mmengine.dataset")()
    names = ("BatchSampler", "RandomSampler", "SequentialSampler", "WeightedRandomSampler")
    return {**{name: getattr(data, name) for name in names}, **ours}


_HOME = "hookloop.dialects.mmengine"

RUNNERS = Registry("runner", build_func=build_runner_from_cfg)
RUNNER_CONSTRUCTORS = Registry("runner constructor")
LOOPS = Registry("loop")
HOOKS = Registry("hook").filled(_from(f"{_HOME}.hooks"))
LOG_PROCESSORS = Registry("log processor").filled(_from(f"{_HOME}.runner"))
OPTIMIZERS = Registry("optimizer").filled(_torch_optimizers)
OPTIM_WRAPPERS = Registry("optim_wrapper").filled(_from(f"{_HOME}.optim"))
OPTIM_WRAPPER_CONSTRUCTORS = Registry("optimizer wrapper constructor").filled(
    _from(f"{_HOME}.optim")
)
PARAM_SCHEDULERS = Registry("parameter scheduler", build_func=build_scheduler_from_cfg).filled(
    _from(f"{_HOME}.optim")
)
DATASETS = Registry("dataset").filled(_from(f"{_HOME}.dataset"))
DATA_SAMPLERS = Registry("data sampler").filled(_samplers)
TRANSFORMS = Registry("transform")
MODELS = Registry("model", build_func=build_model_from_cfg).filled(_torch_modules)
MODEL_WRAPPERS = Registry("model wrapper")
WEIGHT_INITIALIZERS = Registry("weight initializer")
BATCH_AUGMENTS = Registry("batch augment")
TASK_UTILS = Registry("task util")
METRICS = Registry("metric").filled(_from(f"{_HOME}.evaluator"))
EVALUATOR = Registry("evaluator").filled(_from(f"{_HOME}.evaluator"))
VISUALIZERS = Registry("visualizer").filled(_from(f"{_HOME}.visualization"))
VISBACKENDS = Registry("vis_backend").filled(_from(f"{_HOME}.visualization"))
FUNCTIONS = Registry("function")
INFERENCERS = Registry("inferencer")


class DefaultScope:
    """The project in whose registries names are looked up first; only its name is kept."""

    _current: DefaultScope | None = None

    def __init__(self, name: str, scope_name: str) -> None:
        self.instance_name, self.scope_name = name, scope_name

    @classmethod
    def get_instance(cls, name: str, **kwargs: str) -> DefaultScope:
        """Make a scope and let it be the current one."""
        cls._current = cls(name, kwargs.get("scope_name", "mmengine"))
        return cls._current

    @classmethod
    def get_current_instance(cls) -> DefaultScope | None:
        """Return the scope made last."""
        return cls._current


def init_default_scope(scope: str) -> None:
    """Make a scope the current one."""
    DefaultScope.get_instance(scope, scope_name=scope)


def register_all_modules(init_default_scope: bool = True) -> None:
    """Nothing: names are imported when they are looked up."""
