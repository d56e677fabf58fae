# ruff: noqa: RUF009 - the fields of groups are made by a function that adds what a config needs
"""The settings of a training, each listed once.

The table serves the `Trainer` and configs alike: their schema, the checks of values, what TAB
offers, the page of keys, and what a resume compares. What most scripts use is an argument of the
Trainer by itself; the rest is in a few groups, each a dataclass here and a mapping in a config. A
new setting is a field of a group. Nothing here imports torch, because a shell completes keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from hookloop import peers
from hookloop.arguments import check_names, check_values, unknown_argument
from hookloop.errors import ArgumentError, caused_by
from hookloop.every import Every
from hookloop.runs.moved_settings import MOVED, is_group

if TYPE_CHECKING:
    from pathlib import Path

    from hookloop.checkpoint.state.pretrained import Pretrained
    from hookloop.data.limits import Limit
    from hookloop.data.mixing.weights import Mix
    from hookloop.data.reading.exactness import SeedSamples
    from hookloop.data.stream import Batches
    from hookloop.engine.points import Point
    from hookloop.trainer.arithmetic import Deterministic, Matmul
    from hookloop.trainer.counting import CountTokens
    from hookloop.trainer.preparation import Prepare

Form = Literal[
    "plain", "model", "data", "function", "optimizers", "schedules", "hooks", "default_hooks",
    "points", "weights", "preparations",
]  # fmt: skip
"""How a config writes a value: as it is, or as the description of one or several objects."""


@dataclass(frozen=True)
class Setting:
    """One setting, as far as its annotation does not say it.

    Attributes:
        form: How a config writes it; None if only Python can give it.
        kind: The type of a plain value.
        least: The smallest whole number that it may be.
        is_compared: Whether it changes the numbers of a training: then it is kept in checkpoints,
            and a resume compares it. Where a run is, on which device and how long may differ.
        removes: Whether null removes one of its entries.
    """

    form: Form | None
    kind: object = None
    least: int | None = None
    is_compared: bool = False
    removes: bool = False


def plain(kind: object, *, least: int | None = None, compared: bool = False) -> Setting:
    """Return a setting that a config writes as it is."""
    return Setting("plain", kind, least, compared)


_METADATA = "setting"


def _field(setting: Setting, default: object = None) -> Any:  # noqa: ANN401 - as dataclasses.field
    return field(default=default, metadata={_METADATA: setting})


class Group:
    """Settings that a user thinks of together: an object in Python, a mapping in a config."""

    argument = ""

    if not TYPE_CHECKING:  # Type checkers know the fields themselves.

        def __new__(cls, *args: object, **named: object) -> Self:
            """Check the names and plain values before the constructor takes them."""
            check_names(cls, args, named, _synonyms(cls.argument))
            check_values(cls, args, named)
            return super().__new__(cls)

    def __post_init__(self) -> None:
        for name, setting in self.settings().items():
            value = getattr(self, name)
            if setting.least is not None and isinstance(value, int) and value < setting.least:
                raise ArgumentError(
                    f"{type(self).__name__}: {name}={value} must be at least {setting.least}.",
                    argument=name,
                )

    @classmethod
    def settings(cls) -> dict[str, Setting]:
        """Return the settings of the group by name."""
        listed = fields(cls)  # type: ignore[arg-type]
        return {one.name: one.metadata[_METADATA] for one in listed}

    @classmethod
    def parse(cls, given: object) -> Self:
        """Read what was given to the Trainer: the group, a mapping of its settings, or None."""
        if given is None or isinstance(given, cls):
            return given or cls()
        name = cls.__name__
        if not isinstance(given, Mapping):
            hint = " The data to train on is train_data=." if cls is Data else ""
            raise ArgumentError(
                f"{cls.argument}= is a {type(given).__name__}: write {cls.argument}={name}(...), "
                f"or a mapping of its settings, {', '.join(cls.settings())}.{hint}",
                argument=cls.argument,
            )
        with caused_by(cls.argument):
            return cls(**{str(key): value for key, value in given.items()})


@dataclass(frozen=True)
class Validation(Group):
    """When to validate, where an interval alone does not say it: ``val_every=Validation(...)``.

    Args:
        every: How often: ``"1 epoch"``, ``500`` (iterations), ``"10 min"``; or a mapping from
            streams' names to intervals.
        begin: First epoch or iteration after which to validate, in the unit of ``every``.
        at_start: Whether to validate before training.

    Example:
        >>> Validation("2 epochs", begin=10)
        Validation(every='2 epochs', begin=10, at_start=False)
    """

    argument = "val_every"

    every: Every | int | str | Mapping[str, Every | int | str] = _field(
        plain(Every | int | str | dict[str, object], compared=True), "1 epoch"
    )
    begin: int = _field(plain(int, least=0, compared=True), 0)
    at_start: bool = _field(plain(bool, compared=True), default=False)

    @classmethod
    def parse(cls, given: object) -> Validation:
        """Read ``val_every=``: an interval, one for each stream, or a mapping of settings."""
        if isinstance(given, Validation) or is_group(given):
            return super().parse(given)
        return cls(cast("Every | int | str", given))


@dataclass(frozen=True)
class Data(Group):
    """What is read besides the data to train and validate on, how, and how much of it.

    Args:
        test: Batches for `test`, as ``train_data``.
        predict: Batches for `predict`, as ``train_data``; targets, if there are any, are ignored.
        mix: How several streams of ``train_data`` are mixed: ``"zip"``, ``"cycle"``,
            ``"in order"``, or weights, ``{"a": 3, "b": 1}``, which may change along the run.
        val_mix: ``"zip"`` gives a step a batch of each stream of ``val_data`` and of ``test`` at
            once; by default each stream is evaluated by itself.
        limit: How much to read at most: for ``"train"`` iterations of an epoch, for ``"val"`` and
            ``"test"`` batches of each stream: ``{"train": 100, "val": 10}``.
        overfit: Train and validate on only this many batches, the same ones in every epoch.
        epoch_iters: Iterations per epoch; by default the length of the data.
        seed_samples: Where the workers of a DataLoader get their random numbers. With True, they
            follow from the sample's place in the data, so a resume repeats them; ``"workers"``
            leaves them to torch, and a resume repeats them too; False leaves them to torch
            altogether.
        count_tokens: A function that returns how many tokens a batch has, for intervals such as
            ``"2M tokens"``; by default the number of elements of its ``input_ids``.

    Example:
        >>> Data(limit={"train": 100}).limit, Data().seed_samples
        ({'train': 100}, True)
    """

    argument = "data"

    test: Batches | Mapping[str, Batches] | None = _field(Setting("data", removes=True))
    predict: Batches | Mapping[str, Batches] | None = _field(Setting("data", removes=True))
    mix: Mix | None = _field(plain(str | dict[str, object] | None, compared=True))
    val_mix: Literal["zip"] | None = _field(plain(Literal["zip"] | None))
    limit: Limit | None = _field(plain(dict[str, int] | None, compared=True))
    overfit: int | None = _field(plain(int | None, least=1, compared=True))
    epoch_iters: int | None = _field(plain(int | None, least=1, compared=True))
    seed_samples: SeedSamples = _field(
        plain(bool | Literal["workers"], compared=True), default=True
    )
    count_tokens: CountTokens | None = _field(Setting("function"))


@dataclass(frozen=True)
class Setup(Group):
    """What is settled once, before the first iteration.

    Args:
        load_from: A checkpoint with the weights to start from, or a `Pretrained` that says how to
            take them.
        prepare: What to do to the model first: ``[ChannelsLast(), Cast("bf16")]``.
        deterministic: True allows only operations that repeat their bits, ``"warn"`` warns about
            the others.
        matmul: How exactly float32 matrices are multiplied: ``"highest"``, ``"high"``,
            ``"medium"``.
        points: Mount points of your own.
        config: The effective config of a script, kept in the run directory and in checkpoints. What
            a config file describes is kept by itself.

    Example:
        >>> Setup(deterministic=True).deterministic
        True
    """

    argument = "setup"

    load_from: Pretrained | str | Path | None = _field(Setting("weights"))
    prepare: Prepare = _field(Setting("preparations", is_compared=True))
    deterministic: Deterministic = _field(
        plain(bool | Literal["warn"], compared=True), default=False
    )
    matmul: Matmul | None = _field(
        plain(Literal["highest", "high", "medium"] | None, compared=True)
    )
    points: Iterable[Point | str] = _field(Setting("points"), ())
    config: Mapping[str, object] | None = _field(Setting(None))


GROUPS: dict[str, type[Group]] = {"val_every": Validation, "data": Data, "setup": Setup}
"""The groups by the argument of the Trainer that takes them, which is also the key of a config.
``val_every`` also takes the interval alone."""

FLAT: dict[str, Setting] = {
    "model": Setting("model"),
    "train_data": Setting("data", removes=True),
    "val_data": Setting("data", removes=True),
    "loss": Setting("function"),
    "step": Setting("function", removes=True),
    "optimizer": Setting("optimizers", removes=True),
    "schedule": Setting("schedules", removes=True),
    "metrics": Setting("function", removes=True),
    "max_epochs": plain(int | None, least=1),
    "max_iters": plain(int | None, least=1),
    "val_every": plain(Every | int | str | dict[str, object]),
    "accumulate": plain(int | Literal["auto"] | dict[str, int], least=1, compared=True),
    "clip_norm": plain(float | None, compared=True),
    "precision": plain(Literal["fp32", "bf16", "fp16"], compared=True),
    "device": plain(str),
    "compile": plain(bool | dict[str, object], compared=True),
    "hooks": Setting("hooks", removes=True),
    "default_hooks": Setting("default_hooks"),
    "run_dir": plain(str | None),
    "seed": plain(int | None, compared=True),
    "resume": plain(bool | str | None),
    "parallel": plain(str | dict[str, object] | None),
}
"""The arguments of the Trainer that are no group, and ``val_every``, which need not be one."""

SETTINGS: dict[str, Setting] = FLAT | {
    f"{argument}.{name}": setting
    for argument, group in GROUPS.items()
    for name, setting in group.settings().items()
}
"""All settings by their path, as overrides write it: ``seed``, ``data.limit``."""

IN_CONFIGS = {path: one for path, one in SETTINGS.items() if one.form is not None}
"""Those that a config may have."""

KEYS = tuple(dict.fromkeys(path.partition(".")[0] for path in IN_CONFIGS))
"""The keys of a config that the Trainer gets."""

_OWN = {"test_data": "data.test", "predict_data": "data.predict"}
"""What messages call the streams that groups hold."""


def path_of(argument: str) -> str | None:
    """Return the path of a setting that an error names, by itself or within its group.

    >>> path_of("limit"), path_of("seed"), path_of("test_data"), path_of("zebra")
    ('data.limit', 'seed', 'data.test', None)
    """
    if argument in SETTINGS or argument in GROUPS:
        return argument
    if argument in _OWN:
        return _OWN[argument]
    return next((path for path in SETTINGS if path.partition(".")[2] == argument), None)


def in_python(path: str) -> str:
    """Return how a script gives the setting of a path.

    >>> in_python("data.limit"), in_python("seed")
    ('data=Data(limit=...)', 'seed=...')
    """
    argument, _, name = path.partition(".")
    return f"{argument}={GROUPS[argument].__name__}({name}=...)" if name else f"{argument}=..."


def spread(arguments: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments of a Trainer by path: each group is replaced by what was given in it.

    >>> spread({"seed": 1, "data": {"overfit": 2}})
    {'seed': 1, 'data.overfit': 2}
    """
    found: dict[str, object] = {}
    for argument, value in arguments.items():
        group = GROUPS.get(argument)
        if group is None or (group is Validation and not _says_more(value)):
            found[argument] = value
        elif isinstance(value, group):
            # Identity, because a default is never a tensor, and == compares one's elements.
            found |= {
                f"{argument}.{one.name}": held
                for one in fields(group)  # type: ignore[arg-type]
                if (held := getattr(value, one.name)) is not one.default
            }
        elif isinstance(value, Mapping):
            found |= {f"{argument}.{name}": one for name, one in value.items()}
        elif value is not None:
            group.parse(value)
    return found


def gathered(by_path: Mapping[str, object]) -> dict[str, Any]:
    """Return the arguments of a Trainer from values by path; the opposite of `spread`.

    >>> gathered({"seed": 1, "data.overfit": 2})
    {'seed': 1, 'data': Data(test=None, predict=None, mix=None, val_mix=None, limit=None, overfit=2,
        epoch_iters=None, seed_samples=True, count_tokens=None)}
    """
    given = {path: value for path, value in by_path.items() if "." not in path}
    held: dict[str, dict[str, object]] = {}
    for path, value in by_path.items():
        argument, dot, name = path.partition(".")
        if dot:
            held.setdefault(argument, {})[name] = value
    if "val_every" in held and "val_every" in given:
        held["val_every"].setdefault("every", given["val_every"])
    return given | {argument: GROUPS[argument].parse(values) for argument, values in held.items()}


def _says_more(val_every: object) -> bool:
    return isinstance(val_every, Validation) or is_group(val_every)


def compared(given: Mapping[str, object]) -> dict[str, object]:
    """Return the settings among the arguments of a Trainer that change its numbers, as a tree.

    The values are as they were given, or the defaults.
    """
    found: dict[str, object] = {}
    for name, setting in FLAT.items():
        if setting.is_compared and name in given:
            found[name] = given[name]
    for argument, group in GROUPS.items():
        parsed = group.parse(given[argument])
        found[argument] = {
            name: getattr(parsed, name) for name, one in group.settings().items() if one.is_compared
        }
    return found


def instead_of(name: str) -> str | None:
    """Return the path of a setting that has moved, under its old name or one of other libraries."""
    if name in MOVED:
        return ".".join(MOVED[name])
    path = peers.translation(name, peers.ARGUMENTS)
    return path if path is not None and "." in path else None


def advice() -> dict[str, str]:
    """Return what to write instead of names that were arguments of a Trainer, or are elsewhere."""
    found = {f"write {in_python('.'.join(path))}": name for name, path in MOVED.items()}
    found["write setup=Setup(config=...)"] = "config"
    for path, names in peers.ARGUMENTS.items():
        if "." in path:
            key = f"write {in_python(path)}"
            found[key] = f"{found.get(key, '')} {names}"
    return found | dict(peers.ADVICE)


def _synonyms(argument: str) -> dict[str, str]:
    """Return the names that others use for the settings of a group."""
    start = f"{argument}."
    return {
        path.removeprefix(start): names
        for path, names in peers.ARGUMENTS.items()
        if path.startswith(start)
    }


def unknown_setting(argument: str, name: str) -> str:
    """Return the message about a setting that a group does not have."""
    group = GROUPS[argument]
    known = [one for one, setting in group.settings().items() if setting.form is not None]
    hint = " The data to train on is 'train_data'." if (argument, name) == ("data", "type") else ""
    return unknown_argument(argument, name, known, _synonyms(argument)) + hint
