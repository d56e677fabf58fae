"""What a resume compares: the kinds of the parts, the config, the plain arguments of the Trainer.

Another model, optimizer or schedule is rejected, unless the user said that the change is meant.
Other differences are reported, in one line.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from hookloop.errors import CheckpointError, nearest
from hookloop.every import Every
from hookloop.runs import trees
from hookloop.runs.moved_settings import moved
from hookloop.runs.records import plain
from hookloop.runs.trees import NOTHING, Difference
from hookloop.secret import fingerprints
from hookloop.trainer.settings import GROUPS, compared

if TYPE_CHECKING:
    from hookloop.engine.run import Run
    from hookloop.trainer.preparation import Prepared

FIXED = ("type", "amsgrad", "centered")
"""Settings of an optimizer on which the form of its state depends."""

_log = logging.getLogger("hookloop")


def plain_arguments(given: Mapping[str, object], prepared: Prepared) -> dict[str, object]:
    """Return the arguments of a Trainer that a resume compares, as plain values."""
    values = compared(given)
    when, data = (cast("dict[str, object]", values[name]) for name in ("val_every", "data"))
    every = when["every"]
    if isinstance(every, Mapping):
        when["every"] = {str(name): str(one) for name, one in every.items()}
    else:
        when["every"] = str(Every.parse(cast("Every | int | str", every)))
    if not (when["begin"] or when["at_start"]):
        values["val_every"] = when["every"]
    if callable(data["mix"]):
        data["mix"] = "a function"  # Another one may do the same.
    cast("dict[str, object]", values["setup"])["prepare"] = prepared.describe()
    return cast("dict[str, object]", plain(values))


def kinds_of(run: Run) -> dict[str, object]:
    """Describe the parts whose change would make a resume meaningless."""
    return {
        "model": _class_name(type(run.model)),
        "optimizers": {
            name: {"type": type(one).__name__, **_numbers(one.defaults)}
            for name, one in run.optimizers.items()
        },
        "schedules": {name: type(one.scheduler).__name__ for name, one in run.schedules.items()},
    }


def settings_of(run: Run) -> dict[str, object]:
    """Return what optimizers and schedules are set to, under the names that a user knows."""
    kinds = _without_defaults({"optimizers": kinds_of(run)["optimizers"]})
    # Without optimizers there is no name to speak of.
    named = {"optimizers": {}, "schedules": kinds_of(run)["schedules"]}
    types = cast("dict[str, str]", named["schedules"])
    shapes = cast("dict[str, dict[str, object]]", _shapes(_schedules_of(run))["schedules"])
    schedules = {name: {"type": kind, **shapes[name]} for name, kind in types.items()}
    return {**kinds, **_without_defaults({"schedules": schedules})} if schedules else kinds


def compare(
    run: Run, checkpoint: Mapping[str, object], label: str, change: Sequence[str] = ()
) -> list[Difference]:
    """Compare a run with the checkpoint that it continues from; return the changes that are meant.

    Args:
        run: The run.
        checkpoint: The checkpoint.
        label: Where it is, for messages.
        change: What the user wants to change: ``"optimizer.lr"``, or ``"optimizer"`` for all of it.

    Raises:
        CheckpointError: If a part is another one and the change is not meant, or not possible.
    """
    _check_names(run, checkpoint, change)
    then, now = checkpoint.get("kinds", {}), kinds_of(run)
    unlike = find_differences(_without_defaults(then, now), _without_defaults(now, then))
    kinds = [one for one in unlike if not _is_added_by_torch(one)]
    _check_kinds(kinds, label, change)
    found = _config_differences(run, checkpoint)
    named = {one.path.partition(".")[0] for one in found}
    saved = moved(cast("dict[str, object]", checkpoint.get("arguments") or {}))
    both = [name for name in run._internals.arguments if name in saved and name not in named]
    arguments = [
        one
        for name in both
        for one in find_differences(
            *_in_both(saved[name], run._internals.arguments[name], name), name
        )
    ]
    for what, differences in (("a changed config", found), ("other arguments", arguments)):
        unexpected = [str(one) for one in differences if not is_meant(one.path, change)]
        if unexpected:
            _log.warning("Resumed with %s: %s", what, "; ".join(unexpected))
    _warn_of_environment(run, checkpoint)
    # A schedule of another length is that of a longer run, which needs no word.
    old, new = _shapes(checkpoint["schedules"]), _shapes(_schedules_of(run))
    shapes = find_differences(_without_defaults(old, new), _without_defaults(new, old))
    every = (*found, *arguments, *kinds, *shapes)
    return list({one.path: one for one in every if is_meant(one.path, change)}.values())


def _in_both(old: object, new: object, name: str) -> tuple[object, object]:
    """Return the settings of a group that an older checkpoint has as well."""
    if name not in GROUPS or not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return old, new
    names = [one for one in new if one in old]
    return {one: old[one] for one in names}, {one: new[one] for one in names}


def is_meant(path: str, change: Sequence[str]) -> bool:
    """Return whether a difference is among the changes that the user named.

    >>> is_meant("optimizer.lr", ["optimizer"]), is_meant("hooks", ["hooks.StopAfter.epochs"])
    (True, True)
    """
    # Lists are compared as a whole, so that a name may be longer than the path of the difference.
    return any(f"{path}.".startswith(f"{one}.") or one.startswith(f"{path}.") for one in change)


def find_differences(old: object, new: object, path: str = "") -> list[Difference]:
    """List the plain values that differ between two trees; a list is compared as a whole."""
    return list(trees.differences(old, new, path, is_equal=_is_equal))


def _check_names(run: Run, checkpoint: Mapping[str, object], change: Sequence[str]) -> None:
    """Reject a name that is neither a part nor an argument nor a key of the config."""
    shapes = _shapes(_schedules_of(run)) if run.schedules else {}
    kinds = _without_defaults(kinds_of(run)) | _without_defaults(shapes)
    saved = moved(cast("dict[str, object]", checkpoint.get("config") or {}))
    given = (kinds, run._internals.arguments, dict(run.config), saved)
    known = [path for tree in given for path in _paths(tree)]
    for name in change:
        if not any(is_meant(path, [name]) for path in known):
            raise CheckpointError(
                f"resume: there is no '{name}' that could be changed.{nearest(name, known)}",
                argument="resume",
            )


def _paths(tree: object, path: str = "") -> list[str]:
    if not isinstance(tree, Mapping) or not tree:
        return [path]
    return [
        inner
        for key, value in tree.items()
        for inner in _paths(value, f"{path}.{key}" if path else str(key))
    ]


def _without_defaults(kinds: object, others: object = None) -> dict[str, object]:
    """Return the kinds under the names that a user knows: ``optimizer.lr``, ``schedule``.

    Args:
        kinds: What `kinds_of` returned.
        others: The kinds to compare them with, whose optimizers may have names.
    """
    named: dict[str, object] = {}
    for name, value in kinds.items() if isinstance(kinds, Mapping) else ():
        theirs = others.get(name, value) if isinstance(others, Mapping) else value
        is_only = all(isinstance(one, Mapping) and [*one] == ["default"] for one in (value, theirs))
        ours = name.removesuffix("s") if isinstance(value, Mapping) else str(name)
        named[ours] = value["default"] if is_only else value
    return named


def _schedules_of(run: Run) -> dict[str, object]:
    return {name: one.state_dict() for name, one in run.schedules.items()}


def _shapes(schedules: object) -> dict[str, object]:
    """Return the settings of schedules from their states, in the form of `kinds_of`."""
    states = cast("Mapping[str, object]", schedules)
    return {"schedules": {name: _settings(state) for name, state in states.items()}}


def _settings(state: object) -> dict[str, object]:
    """Return what a schedule was built with, without what its class keeps for itself."""
    shape = state.get("shape") if isinstance(state, Mapping) else None
    kept = shape if isinstance(shape, Mapping) else {}
    return {k: v for k, v in kept.items() if not str(k).startswith("_") and k != "last_epoch"}


def _check_kinds(found: Sequence[Difference], label: str, change: Sequence[str]) -> None:
    fixed = [one for one in found if not _may_change(one)]
    unexpected = [one for one in found if not is_meant(one.path, change)]
    if not (fixed or unexpected):
        return
    listed = "; ".join(dict.fromkeys(map(str, [*fixed, *unexpected])))
    start = f"'{label}' cannot be resumed with another model, optimizer or schedule: {listed}."
    if fixed:
        raise CheckpointError(
            f"{start} Go back to the old one, or begin a new run with load_from=."
        )
    names = ", ".join(f"'{one.path}'" for one in unexpected)
    raise CheckpointError(
        f"{start} If the change is meant, say so: --change on the command line, or "
        f"resume=Resume(..., change=[{names}]). Otherwise go back to the old one, or begin a new "
        "run with load_from=."
    )


def _is_added_by_torch(one: Difference) -> bool:
    """Return whether a difference is what `Optimizer.load_state_dict` adds to the defaults."""
    # So the checkpoint of a resumed run has a default that the optimizer's class may not know.
    values = (one.old, one.new)
    return one.path.endswith(".differentiable") and all(v in (False, NOTHING) for v in values)


def _may_change(one: Difference) -> bool:
    """Return whether the state of the checkpoint fits the changed part, too."""
    part, _, setting = one.path.partition(".")
    is_setting = part == "optimizer" and setting.rpartition(".")[2] not in ("", *FIXED)
    return is_setting and not isinstance(one.old, Mapping) and not isinstance(one.new, Mapping)


def _config_differences(run: Run, checkpoint: Mapping[str, object]) -> list[Difference]:
    if not (run.config and checkpoint.get("config")):
        return []
    old, new = moved(cast("dict[str, object]", checkpoint["config"])), dict(run.config)
    for config in (old, new):
        config.pop("import_path", None)  # It depends on where the run is, not what it does.
    # In the form of the saved one, which went through `plain`: infinities and objects are text
    # there.
    return find_differences(old, plain(new))


def _warn_of_environment(run: Run, checkpoint: Mapping[str, object]) -> None:
    then, now = checkpoint.get("environment"), fingerprints(run.config)
    if isinstance(then, Mapping):
        moved = [name for name in now if name in then and then[name] != now[name]]
        if moved:
            _log.warning("Resumed with other numbers from the environment: %s", ", ".join(moved))


def _class_name(kind: type) -> str:
    """Return the name of a model's class, as it was before torch shared it among ranks."""
    # fully_shard and replicate derive a class in place, such as FSDPNet from Net.
    while (
        len(kind.__bases__) == 2
        and kind.__bases__[0].__module__.startswith("torch.distributed.")
        and kind.__name__.endswith(kind.__bases__[1].__name__)
    ):
        kind = kind.__bases__[1]
    return kind.__name__


def _is_equal(old: object, new: object) -> bool:
    """Return whether two plain values are equal; anything else, such as a tensor, never is."""
    if isinstance(old, list | tuple) and isinstance(new, list | tuple):
        return len(old) == len(new) and all(map(_is_equal, old, new))
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return not find_differences(old, new)
    # `==` between tensors returns a tensor, whose truth value is an error.
    plain = bool | int | float | str | None
    return isinstance(old, plain) and isinstance(new, plain) and old == new


def _numbers(defaults: Mapping[str, object]) -> dict[str, object]:
    if defaults.get("differentiable") is False:
        defaults = {key: value for key, value in defaults.items() if key != "differentiable"}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in defaults.items()
        # Tensors, such as a learning rate that is one, are left out: they never compare as equal.
        if isinstance(value, int | float | str | tuple | None)
    }
