"""Build a `Trainer` from a checked config. Nothing else in this package constructs objects.

Parts are built in a fixed order (model, data, loss, step, metrics, optimizers, schedules, hooks)
after the seed is set, so that a config draws the same random numbers as a script that does this.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from hookloop.config.blueprint import Blueprint, draw
from hookloop.config.dump import effective
from hookloop.config.made_hooks import MadeHooks
from hookloop.config.other_keys import written_as
from hookloop.config.parts.optimizers import ONLY, OptimizerPart
from hookloop.config.parts.parameters import select_parameters
from hookloop.config.parts.part import AUTO, LENGTHS, Part
from hookloop.config.tree import Config, Key, spell
from hookloop.data.random.states import seed_all
from hookloop.engine.hook import Hook
from hookloop.engine.points import PointTable
from hookloop.errors import ConfigError, HookError, HookloopError, Problem, caused_by
from hookloop.every import Every
from hookloop.hooks.writing.write_to import WriteTo
from hookloop.lr_schedule import Schedule
from hookloop.runs.layout import RunDir, default_path
from hookloop.trainer.inputs import check_model, expected_progress
from hookloop.trainer.intended_changes import Resume
from hookloop.trainer.preparation import Preparation, Prepared
from hookloop.trainer.settings import gathered, path_of
from hookloop.trainer.start import AUTO as BEGIN_OR_CONTINUE
from hookloop.trainer.start import Start
from hookloop.trainer.trainer import Trainer
from hookloop.writers.base import Writer

if TYPE_CHECKING:
    from torch import nn
    from torch.optim.lr_scheduler import LRScheduler

    from hookloop.engine.hook import Hook
    from hookloop.engine.points import Point
    from hookloop.engine.progress import Progress

T = TypeVar("T")


def build(
    config: Config,
    run_dir: str | Path | None = None,
    resume: Resume | bool | str | Path | None = None,
    hooks: Sequence[Hook] = (),
) -> Trainer:
    """Build everything that a config describes, and a Trainer from it.

    Args:
        config: The result of `load`.
        run_dir: The run's directory, instead of the one in the config.
        resume: As for `Trainer`, instead of the value in the config.
        hooks: Hooks besides those of the config, which does not tell of them.

    Raises:
        ConfigError: With every problem of the config, before anything is built.
    """
    builder = _builder(config, run_dir, resume)
    try:
        given = with_hooks(builder.build(), hooks)
        trainer = Trainer(**given)  # type: ignore[arg-type]
        # Now and not in `train`, because here an error can still be given its line.
        trainer.check_hooks()
    # It has its lines already.
    except ConfigError:
        raise
    except HookloopError as error:
        key = builder.key_of(error)
        if key is None:
            raise
        message = f"{error}" if error.hook is None else f"{spell(key)}: {error}"
        raise ConfigError([Problem(message, config.where(key))]) from error
    return trainer


def with_hooks(given: dict[str, object], hooks: Sequence[Hook]) -> dict[str, object]:
    """Return the arguments of a Trainer with more hooks."""
    own = given.get("hooks") or ()
    if not hooks:
        return given
    if isinstance(own, Mapping):
        return {**given, "hooks": {**own, **{hook.name: hook for hook in hooks}}}
    return {**given, "hooks": [*cast("Iterable[Hook]", own), *hooks]}


def arguments(
    config: Config,
    run_dir: str | Path | None = None,
    resume: Resume | bool | str | Path | None = None,
) -> dict[str, object]:
    """Return the arguments that `build` gives to the Trainer."""
    return _builder(config, run_dir, resume).build()


def build_model(config: Config) -> nn.Module:
    """Build the model that a config describes, and nothing else: its data may not be there."""
    return plan_part(config, "model").make_model()


def plan_part(config: Config, *names: str) -> Builder:
    """Return what builds some parts of a config, without a look at the others."""
    kept = (*names, *written_as("imports"), "import_path", "vars")
    tree = {key: value for key, value in config.tree.items() if key in kept}
    return plan_build(replace(config, tree=tree, problems=[]))


def plan_build(config: Config) -> Builder:
    """Check a config and return what builds its parts, each when it is asked for."""
    return _builder(config, None, None)


def _builder(
    config: Config, run_dir: str | Path | None, resume: Resume | bool | str | Path | None
) -> Builder:
    blueprint = draw(config)
    settings = dict(blueprint.settings)
    if run_dir is not None:
        settings["run_dir"] = run_dir
    if resume is not None:
        settings["resume"] = resume
    if settings.get("run_dir") is None and config.tree.get("name"):
        settings["run_dir"] = default_path(str(config.tree["name"]))
    return Builder(config, blueprint, settings)


class Builder:
    """Builds the parts of one blueprint, each once."""

    def __init__(self, config: Config, blueprint: Blueprint, settings: dict[str, object]) -> None:
        self.config = config
        self.blueprint = blueprint
        self.settings = settings
        self.hooks = MadeHooks(config, self._points())

    def build(self) -> dict[str, object]:
        """Return the arguments of the Trainer."""
        if self.settings.get("seed") is not None:
            seed_all(cast("int", self.settings["seed"]))
        built = {name: self._make(part, {}) for name, part in self.blueprint.parts.items()}
        model = cast("nn.Module", built["model"])
        # Before the optimizers, which would fail first, with an error about parameters.
        check_model(model)
        with caused_by("prepare"):
            steps = cast("list[Preparation]", self._make(self.blueprint.prepare, {}))
            prepared = Prepared.of(model, steps)
        optimizers = {
            name: self._optimizer(part, model) for name, part in self.blueprint.optimizers.items()
        }
        schedules = self._schedules(optimizers, built.get("train_data"))
        hooks, default_hooks = self._hooks(built)
        by_path = {
            **built,
            "setup.prepare": prepared,
            "optimizer": _single(optimizers),
            "schedule": _single(schedules),
            "hooks": hooks,
            "default_hooks": default_hooks,
            "setup.points": self.blueprint.points,
            "setup.load_from": self._make(self.blueprint.load_from, {}),
            **self.settings,
            # Last, because a hook may have claimed the run's directory, to which its paths are
            # relative.
            "setup.config": effective(
                self.config, cast("str | None", self.settings.get("run_dir"))
            ),
        }
        return gathered(by_path)

    def make_model(self) -> nn.Module:
        """Build the model alone, after the seed is set."""
        if self.settings.get("seed") is not None:
            seed_all(cast("int", self.settings["seed"]))
        model = cast("nn.Module", self.make(self.blueprint.parts["model"]))
        check_model(model)
        return model

    def make(self, part: object) -> object:
        """Build a part of the blueprint alone."""
        return self._make(part, {})

    def key_of(self, error: HookloopError) -> Key | None:
        """Return the key of the hook or the argument that an error names; None without one."""
        if error.hook is not None:
            return self.hooks.key_of(error.hook)
        path = path_of(error.argument) if error.argument is not None else None
        key = tuple(path.split(".")) if path is not None else ()
        return key if key and key[0] in self.config.tree else None

    def _points(self) -> PointTable:
        try:
            return PointTable(cast("list[Point]", self.blueprint.points))
        except HookError as error:
            key = ("setup", "points")
            problem = Problem(f"{spell(key)}: {error}", self.config.where(key))
            raise ConfigError([problem]) from error

    def _optimizer(self, part: object, model: nn.Module) -> object:
        if not isinstance(part, OptimizerPart):
            return part
        supply: dict[str, object] = {"model": model}
        if "params" in part.part.supplied:
            supply["params"] = select_parameters(model, part, self.config)
        return self._make(part.part, supply)

    def _schedules(self, optimizers: Mapping[str, object], data: object) -> dict[str, object]:
        if not self.blueprint.schedules:
            return {}
        progress = expected_progress(self.settings, data)
        return {
            name: self._schedule(part, optimizers.get(name), progress)
            for name, part in self.blueprint.schedules.items()
        }

    def _schedule(self, part: object, optimizer: object, progress: Progress) -> object:
        if not isinstance(part, Part):
            return part
        # Removed from the settings, which `_make` would set on torch's scheduler: they are for
        # ours.
        every = Every.parse(cast("int | str", part.settings.pop("every", 1)))
        metric = cast("str | None", part.settings.pop("metric", None))
        self._fill_lengths(part, every, progress)
        scheduler = cast("LRScheduler", self._make(part, {"optimizer": optimizer}))
        return Schedule(scheduler, every, metric)

    def _fill_lengths(self, part: Part, every: Every, progress: Progress) -> None:
        """Replace ``auto`` by the number of steps that the schedule will take."""
        for name, value in part.arguments.items():
            if name in LENGTHS and value == AUTO:
                length = _length(name, every, progress)
                if length is None:
                    at = (*part.key, name)
                    message = (
                        f"{spell(at)}: the length of the run is not known, so 'auto' cannot be "
                        "computed: give the number, or max_iters, or max_epochs with epoch_iters."
                    )
                    raise ConfigError([Problem(message, self.config.where(at))])
                part.arguments[name] = length
            for inner in value if isinstance(value, list) else [value]:
                if isinstance(inner, Part):
                    self._fill_lengths(inner, every, progress)

    def _hooks(self, built: Mapping[str, object]) -> tuple[list[Hook], object]:
        data = built.get("train_data")
        supply = {"model": built["model"], "dataset": getattr(data, "dataset", data)}
        defaults = self.blueprint.default_hooks
        changed = list(defaults.values()) if isinstance(defaults, dict) else []
        for part in [*self.blueprint.hooks, *changed]:
            # Only if a hook needs it, and once. Otherwise the session makes it as the run starts.
            if isinstance(part, Part) and "output_dir" in part.supplied:
                supply["output_dir"] = supply.get("output_dir") or self._claim_directory()
        hooks, problems = self._make_all(dict(enumerate(self.blueprint.hooks)), supply)
        for index, hook in hooks.items():
            part = self.blueprint.hooks[index]
            self.hooks.add(_key(part, ("hooks",)), part, hook)
        listed = self.hooks.all()
        if not isinstance(defaults, dict):
            _raise_any([*problems, *self.hooks.problems])
            return listed, defaults
        changes, further = self._make_all(defaults, supply)
        for name, hook in changes.items():
            if hook is not None:
                part = defaults[name]
                ours = self.hooks.add(_key(part, ("default_hooks", name)), part, hook)
                # An entry is one hook. Where several stand for a foreign one, the Trainer adapts it
                # itself.
                changes[name] = ours[0] if len(ours) == 1 else hook
        _raise_any([*problems, *further, *self.hooks.problems])
        return listed, changes

    def _make_all(
        self, parts: Mapping[T, object], supply: Mapping[str, object]
    ) -> tuple[dict[T, object], list[Problem]]:
        """Build several parts; continue after one that rejects its arguments, to report all."""
        made: dict[T, object] = {}
        problems: list[Problem] = []
        for name, part in parts.items():
            try:
                made[name] = self._make(part, supply)
            except ConfigError as error:
                problems += error.problems
        return made, problems

    def _claim_directory(self) -> str:
        """Create the run's directory now, because a hook needs it in its constructor."""
        run_dir = cast("str | Path | None", self.settings.get("run_dir"))
        resume, _ = Resume.parse(cast("Resume | bool | str", self.settings.get("resume")))
        if resume:
            Start(run_dir, resume)  # Rejects what is not there.
        if resume and resume not in (True, BEGIN_OR_CONTINUE):
            home = Path(str(resume))
            run_dir = run_dir or (home.parent if home.is_file() else home)
        made = RunDir.open(run_dir) if resume and run_dir else RunDir.create(run_dir)
        self.settings["run_dir"] = made.path
        return str(made.path)

    def _make(self, part: object, supply: Mapping[str, object]) -> object:
        """Build a part and all parts inside it; anything else is returned as it is."""
        if isinstance(part, dict):
            return {name: self._make(item, supply) for name, item in part.items()}
        if isinstance(part, list):
            return [self._make(item, supply) for item in part]
        if not isinstance(part, Part):
            return part
        arguments = {name: self._make(item, supply) for name, item in part.arguments.items()}
        arguments |= self._opened(part, supply, arguments)
        arguments |= {name: supply[name] for name in part.supplied}
        where = self.config.where(part.key)
        try:
            made = _call(part, arguments)
        except ConfigError:
            raise
        except HookloopError as error:  # A value that our own constructor rejects.
            raise ConfigError([Problem(f"{spell(part.key)}: {error}", where)]) from error
        except ValueError as error:
            # torch raises ValueError for a bad value; in the project's own code it may be a bug,
            # which needs its traceback.
            if not str(getattr(part.make, "__module__", "")).startswith("torch"):
                self._note(error, part)
                raise
            raise ConfigError([Problem(f"{spell(part.key)}: {error}", where)]) from error
        except Exception as error:
            self._note(error, part)
            raise
        # After the call: constructors do not know these, and may set defaults of their own.
        for name, value in part.settings.items():
            setattr(made, name, value)
        return made

    def _opened(
        self, part: Part, supply: Mapping[str, object], made: Mapping[str, object]
    ) -> dict[str, object]:
        """Return the writer of a `WriteTo` as a function, so that the hook closes what it opens.

        The first writer is made with the config, which reports what is wrong with its arguments. A
        test after the training opens another.
        """
        written, first = part.arguments.get("writer"), made.get("writer")
        is_write_to = isinstance(part.make, type) and issubclass(part.make, WriteTo)
        if not (is_write_to and isinstance(written, Part) and isinstance(first, Writer)):
            return {}
        waiting = [first]
        return {"writer": lambda run: waiting.pop() if waiting else self._make(written, supply)}

    def _note(self, error: Exception, part: Part) -> None:
        where = self.config.where(part.key)
        suffix = f", {where}" if where else ""
        error.add_note(f"while building {spell(part.key)} ({part.signature.name}){suffix}")


def _raise_any(problems: list[Problem]) -> None:
    if problems:
        raise ConfigError(problems)


def _key(part: object, otherwise: Key) -> Key:
    """Return the key of a part; an object of a Python config has none of its own."""
    return part.key if isinstance(part, Part) else otherwise


def _call(part: Part, arguments: dict[str, object]) -> object:
    if part.way == "use":
        return part.make
    if part.way == "bind":
        return partial(part.make, **arguments)
    if part.signature.star in arguments:
        # Python cannot give *args by name; a bound signature sorts the values into a call.
        bound = inspect.signature(part.make).bind_partial()
        star = cast("list[object]", arguments[part.signature.star])
        bound.arguments = {**arguments, part.signature.star: tuple(star)}
        return part.make(*bound.args, **bound.kwargs)
    return part.make(**arguments)


def _single(by_name: dict[str, object]) -> object:
    if not by_name:
        return None
    return by_name.get(ONLY, by_name)


def _length(name: str, every: Every, progress: Progress) -> int | None:
    total = progress.total_iters
    if name == "steps_per_epoch":
        return progress.epoch_iters if progress.iters_of_epochs is None else None
    if name == "epochs":
        return progress.max_epochs
    if every.unit == "epochs":
        epochs = progress.max_epochs
        if total is not None and progress.iters_of_epochs is not None:
            epochs = _epochs_within(total, progress.iters_of_epochs)
        elif total is not None and progress.epoch_iters is not None:
            # Rounded up: an epoch that max_iters cuts short is still scheduled.
            epochs = -(-total // progress.epoch_iters)
        total = epochs
    # At least 1, because some schedulers divide by their length.
    return None if total is None else max(1, int(total // every.count))


def _epochs_within(iterations: int, iters_of_epochs: Callable[[int], int | None]) -> int | None:
    """Return in how many epochs, of changing length, a run makes so many iterations."""
    for epochs in range(1, iterations + 1):  # Each epoch makes at least one.
        made = iters_of_epochs(epochs)
        if made is None or made >= iterations:
            return None if made is None else epochs
    return None
