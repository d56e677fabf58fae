"""Changes that are meant: said at a resume, taken over by the loaded state, and recorded.

The state of an optimizer holds the settings of its groups. Loading it brings the old ones back, so
that a changed rate takes effect only if it is set again afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hookloop.checkpoint.state.schedules import join_curve
from hookloop.errors import ArgumentError
from hookloop.runs.records import plain
from hookloop.runs.run_log import current_logs
from hookloop.runs.trees import NOTHING, Difference
from hookloop.trainer.state.parts import Checkpoint, LoadedFrom, Part

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from hookloop.engine.run import Run
    from hookloop.lr_schedule import Schedule

Group = dict[str, object]
Built = dict[str, list[Group]]

OF_SCHEDULE = ("initial_lr", "max_lr", "min_lr", "base_momentum", "max_momentum")
"""Entries of a group in which a schedule keeps its own settings."""


@dataclass(frozen=True)
class Resume:
    """A run to continue with intended changes: ``Resume("runs/a", change=["optimizer.lr"])``.

    Args:
        path: As ``resume=`` of the Trainer: a run, a checkpoint, True or ``"auto"``.
        change: What differs on purpose: settings of an optimizer, arguments, keys of the config.
            ``"optimizer"`` stands for all of its settings.

    Example:
        >>> Resume("runs/a", change="optimizer.lr").change
        ('optimizer.lr',)
    """

    path: bool | str | Path = True
    change: str | Sequence[str] = ()

    def __post_init__(self) -> None:
        if not self.path or not isinstance(self.path, bool | str | Path):
            raise ArgumentError(
                f"Resume: path={self.path!r} must be a run directory or a checkpoint, True or "
                "'auto'.",
                argument="resume",
            )
        names = (self.change,) if isinstance(self.change, str) else tuple(self.change)
        object.__setattr__(self, "change", names)

    @classmethod
    def parse(
        cls, resume: Resume | bool | str | Path | None
    ) -> tuple[bool | str | Path | None, tuple[str, ...]]:
        """Return what to continue and what is changed, for every form of ``resume=``."""
        if isinstance(resume, Resume):
            return resume.path, tuple(resume.change)
        given: object = resume  # A user may write anything.
        if given is not None and not isinstance(given, bool | str | Path):
            raise ArgumentError(
                f"Trainer: resume={resume!r} must be True or False, a path, 'auto', or a Resume.",
                argument="resume",
            )
        return resume, ()


def groups_as_built(optimizers: Mapping[str, Optimizer]) -> Built:
    """Return the settings of all groups, before a state is loaded into them."""
    return {
        name: [{key: value for key, value in group.items() if key != "params"} for group in groups]
        for name, optimizer in optimizers.items()
        for groups in [optimizer.param_groups]
    }


class IntendedChanges(Part):
    """What was changed on purpose, at this resume and at earlier ones."""

    key = "changes"

    def state(self) -> Checkpoint:
        """Return its entry in a checkpoint."""
        return {"changes": self.run._internals.changes}

    def load(self, checkpoint: Checkpoint, source: LoadedFrom) -> None:
        """Let changed settings take effect where the loaded schedule stands, and note them.

        The notes are in the run, and thereby in its summary and its later checkpoints, and in its
        log.
        """
        run = self.run
        for name, optimizer in run.optimizers.items():
            of_optimizer = [o for o in source.changes if _concerns(o, "optimizer", name, run)]
            of_schedule = any(_concerns(one, "schedule", name, run) for one in source.changes)
            keys = {one.path.rpartition(".")[2]: one for one in of_optimizer}
            schedule, rates = run.schedules.get(name), keys.get("lr")
            for group, new in zip(optimizer.param_groups, source.built[name], strict=True):
                for key in keys:
                    if key != "lr" and key in new:
                        group[key] = new[key]
                if rates is not None or (of_schedule and schedule is not None):
                    _set_rate(group, new, schedule, rates)
            if schedule is not None and (rates is not None or of_schedule):
                _join(schedule, optimizer)
        earlier = cast("list[dict[str, object]]", checkpoint.get("changes") or [])
        run._internals.changes = [dict(one) for one in earlier]
        for one in source.changes:
            values = {"old": written(one.old), "new": written(one.new), "how": "resumed"}
            run._internals.changes.append({"iter": run.progress.iter, "key": one.path, **values})
        if source.changes:
            listed = "; ".join(map(str, source.changes))
            for log in current_logs():
                log.note(f"changed on purpose after iteration {run.progress.iter}: {listed}")


def written(value: object) -> object:
    """Return a value as JSON holds it; one that is missing on a side is null."""
    return None if value is NOTHING else plain(value)


def _concerns(change: Difference, part: str, name: str, run: Run) -> bool:
    """Return whether a change is one of this optimizer, or of its schedule."""
    first, *inner = change.path.split(".")
    if first != part:
        return False
    # With several optimizers, the second word is the name of one.
    return name == "default" or not inner or inner[0] not in run.optimizers or inner[0] == name


def _set_rate(
    group: Group, new: Group, schedule: Schedule | None, rates: Difference | None
) -> None:
    """Give a group its new rate; one that a schedule has moved keeps its factor."""
    if schedule is None:
        group["lr"] = new["lr"]
        return
    key = "max_lr" if "max_lr" in new else "initial_lr"
    # ReduceLROnPlateau keeps no initial rate: there the difference itself has both.
    old_base = group.get(key, rates.old if rates is not None else new["lr"])
    new_base = new.get(key, new["lr"])
    group.update({name: new[name] for name in OF_SCHEDULE if name in new})
    if isinstance(old_base, int | float) and isinstance(new_base, int | float) and old_base:
        group["lr"] = cast("float", group["lr"]) * (new_base / old_base)
    else:
        group["lr"] = new["lr"]


def _join(schedule: Schedule, optimizer: Optimizer) -> None:
    """Set the rates to the curve where it has a closed form: no rounding of factors adds up."""
    scheduler = schedule.scheduler
    if not join_curve(scheduler) and hasattr(scheduler, "_last_lr"):
        scheduler._last_lr = [group["lr"] for group in optimizer.param_groups]
