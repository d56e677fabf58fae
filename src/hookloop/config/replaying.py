"""`replay`: repeat iterations of a run, built from what its record says of each start."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import cast

from hookloop.config.build import arguments, plan_build
from hookloop.config.load import load
from hookloop.config.reading.yaml_file import parse_value
from hookloop.config.tree import Config
from hookloop.engine.hook import Hook
from hookloop.runs import plain_yaml
from hookloop.runs.config_values import is_whole
from hookloop.runs.layout import RunDir
from hookloop.runs.moved_settings import moved
from hookloop.short_runs.audit import Audit, audit_run
from hookloop.short_runs.replay import Make, Replay, replay_run
from hookloop.short_runs.route import Line, ReplayError, Route, find_routes, parse_span
from hookloop.short_runs.samples import Samples, find_samples
from hookloop.short_runs.scratch import scratch_directory
from hookloop.trainer.adapters import adapt_all


def replay(
    run_dir: str | Path,
    *,
    at: int | str | Sequence[int],
    hooks: Sequence[Hook | str] = (),
    make: Callable[[Path], Mapping[str, object]] | None = None,
    anyway: bool = False,
    beside: Sequence[Hook] = (),
    tell: Callable[[str], object] = str,
) -> Replay:
    """Repeat iterations of a run bit for bit, and look at them with more hooks.

    It begins with the nearest checkpoint before them and works in a directory that goes away. What
    happened to the run from outside is repeated; nothing is saved, sent or stopped. What the run
    recorded of these iterations is compared. Metrics that only the given hooks record are added to
    ``afterwards.jsonl`` in the run's directory; nothing else is written there.

    Args:
        run_dir: The run.
        at: An iteration, or the first and the last of several: ``1234``, ``"1200:1300"``.
        hooks: Hooks that observe: objects, or their names as in a config.
        make: Returns the arguments of the Trainer of a script, given a directory; for a run without
            a config.
        anyway: Whether to replay what cannot be exact.
        beside: Hooks whose metrics are not kept.
        tell: Is told what is done, before the first iteration.

    Raises:
        ReplayError: If the iterations cannot be repeated exactly, with the reason.
    """
    begun = perf_counter()
    first, last = parse_span(at)
    routes = find_routes(run_dir, first, last)
    made = _of_script(make) if make is not None else _of_config(routes[0])
    given = _hooks(routes[0], hooks)
    return replay_run(
        made, routes, hooks=given, beside=beside, anyway=anyway, tell=tell, begun=begun
    )


def _of_script(make: Callable[[Path], Mapping[str, object]]) -> Make:
    def arguments_of(directory: Path, start: Line) -> Mapping[str, object]:
        return make(directory)

    return arguments_of


def _of_config(route: Route) -> Make:
    if not has_config(route):
        raise ReplayError(
            f"'{route.run.path}' was made by a script, so its config is not known: call "
            "hookloop.replay(..., make=), with a function that returns the arguments of its "
            "Trainer."
        )

    def arguments_of(directory: Path, start: Line) -> Mapping[str, object]:
        return arguments(config_of(route.run, start), run_dir=directory)

    return arguments_of


def has_config(route: Route) -> bool:
    """Return whether the config of each start says all of it; that of a script does not."""
    configs = [one.start.get("config") for one in route.stretches]
    return all(
        isinstance(one, Mapping) and is_whole(cast("dict[str, object]", one)) for one in configs
    )


def config_of(
    run: RunDir,
    start: Line,
    overrides: Sequence[str] = (),
    place: Callable[[str], str] = str,
) -> Config:
    """Return the config of a start, as if it were the file in the directory of the run.

    Args:
        run: The run.
        start: The line of the start.
        overrides: Changes, each ``a.b=value``.
        place: Returns where the code of a directory is.
    """
    tree = moved(cast("Mapping[str, object]", start["config"]))
    # Relative to the run, as they were written.
    paths = [str(one) for one in cast("Sequence[object]", tree.get("import_path") or ())]
    tree["import_path"] = [
        place(os.path.abspath(run.path / one)) if "${" not in one else one for one in paths
    ]
    with scratch_directory("config") as folder:
        file = Path(folder) / "config.yaml"
        file.write_text(plain_yaml.dump(tree), encoding="utf-8")
        return load(file, overrides)


def _hooks(route: Route, hooks: Sequence[Hook | str]) -> list[Hook]:
    """Build the hooks that are given by name; the run's config says where classes are."""
    entries = [parse_value(one) for one in hooks if isinstance(one, str)]
    made: list[object] = []
    if entries:
        start = route.stretches[-1].start
        given = config_of(route.run, start).tree if start.get("config") else {}
        tree: dict[str, object] = {
            key: value for key, value in given.items() if key in ("imports", "import_path")
        }
        # A config needs a model, which is not built.
        tree |= {"model": {"type": "torch.nn.Identity"}, "hooks": entries}
        builder = plan_build(Config(tree, route.run.config_file))
        made = [builder.make(part) for part in builder.blueprint.hooks]
    built = iter(adapt_all(cast("list[Hook]", made)))
    return [next(built) if isinstance(one, str) else one for one in hooks]


def samples(
    run_dir: str | Path,
    *,
    at: int | str | Sequence[int],
    make: Callable[[Path], Mapping[str, object]] | None = None,
) -> Samples:
    """Return which samples an iteration of a run had, without training.

    The loop is walked again from the checkpoint before, or from the beginning: samplers draw the
    orders that the record of the run has, and no sample is loaded.

    Args:
        run_dir: The run.
        at: An iteration, or the first and the last of several: ``1234``, ``"1200:1300"``.
        make: Returns the arguments of the Trainer of a script, given a directory; for a run without
            a config.

    Raises:
        ReplayError: If they cannot be found so, with the reason.
    """
    first, last = parse_span(at)
    routes = find_routes(run_dir, first, last)
    return find_samples(_of_script(make) if make is not None else _of_config(routes[0]), routes)


def audit(
    run_dir: str | Path,
    *,
    segments: int = 5,
    seed: int = 0,
    root: str | None = None,
    make: Callable[[Path], Mapping[str, object]] | None = None,
    tell: Callable[[str], object] = str,
) -> Audit:
    """Check that a run is what it says, and compute some stretches between its checkpoints again.

    Args:
        run_dir: The run.
        segments: How many stretches; the first and the last are always among them.
        seed: Which of the others.
        root: The last link of its fingerprints, as it was noted before.
        make: Returns the arguments of the Trainer of a script, given a directory; for a run without
            a config.
        tell: Is told of each stretch.
    """

    def repeat(first: int, last: int) -> Replay:
        return replay(run_dir, at=(first, last), make=make)

    return audit_run(run_dir, repeat, segments=segments, seed=seed, root=root, tell=tell)
