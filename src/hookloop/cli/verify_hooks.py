"""``hookloop verify-hooks``: find the hooks of a config that change the training."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from hookloop.cli.arguments import chosen_aliases, config_and_overrides
from hookloop.cli.output import set_result
from hookloop.cli.report import print_error, print_text, reporting
from hookloop.cli.scratch import scratch_directory
from hookloop.cli.table import show_table
from hookloop.errors import HookloopError
from hookloop.every import count_of
from hookloop.short_runs.task import Trials, failure_of

USER_ERROR = 2
COLUMNS = ("hook", "class", "declared as", "leaving it out changes")


@click.command("verify-hooks", short_help="List the hooks that change the training.")
@config_and_overrides
@click.option(
    "--iters",
    type=click.IntRange(min=1),
    default=40,
    show_default=True,
    help="Iterations to train.",
)
@reporting
def command(config: Path, overrides: tuple[str, ...], iters: int) -> int:
    """Train CONFIG with all of its hooks, and again with each of them left out.

    The weights and every recorded number of the training and the validation are compared, bit by
    bit. The exit code is 1 if a hook changes them without declaring that it takes part in the
    training. Nothing is left on disk, and nothing is sent to the services of the config's writers.
    """
    from hookloop.config.load import load

    loaded = load(config, overrides)
    if loaded.tree.get("seed") is None:
        print_text("The config has no seed; 0 is used, so that two runs can be compared.")
    with scratch_directory("verify") as folder:
        return Comparison(Path(folder), config, overrides, iters, chosen_aliases()).run()


@dataclass(frozen=True)
class Ending:
    """How a training ended.

    Attributes:
        hooks: The config's hooks: name, class and whether they take part in the training.
        iters: The number of iterations.
        weights: A digest of each tensor of the model.
        numbers: The recorded numbers, by iteration and name.
    """

    hooks: list[dict[str, object]]
    iters: int
    weights: Mapping[str, str]
    numbers: Mapping[str, str]

    def changes(self, other: Ending) -> str:
        """Describe what is different in another training; empty if nothing is different."""
        parts = []
        if other.iters != self.iters:
            parts.append(f"the length: {count_of(other.iters, 'iteration')}, not {self.iters}")
        weights = [
            name for name, digest in self.weights.items() if other.weights.get(name) != digest
        ]
        if weights:
            parts.append(f"the weights: {_first_of(weights)}")
        # A number that only one of the two trainings has is recorded by the hook itself.
        numbers = [
            name for name, value in self.numbers.items() if other.numbers.get(name, value) != value
        ]
        if numbers:
            parts.append(f"the numbers: {_first_of(numbers)}")
        return "; ".join(parts)


class Comparison(Trials):
    """Trains a config with all of its hooks, and without each of them."""

    def run(self) -> int:
        """Train, compare, show; return the exit code."""
        whole = self._train("all", None)
        # Without this, the randomness of the config would be blamed on every hook.
        if differences := whole.changes(self._train("again", None)):
            set_result({"is_repeatable": False, "differences": differences})
            print_error(
                f"two runs of this config differ already, in {differences}. Seed what is random, "
                "and add deterministic=true."
            )
            return USER_ERROR
        print_text(f"with all hooks: {count_of(whole.iters, 'iteration')}, twice the same.")
        rows, culprits = [], []
        for number, hook in enumerate(whole.hooks):
            name, takes_part = str(hook["name"]), bool(hook["takes_part"])
            try:
                changes = whole.changes(self._train(f"without_{number}", name))
            # A training that fails without the hook depends on it, which is a result and not an
            # error.
            except HookloopError as error:
                changes = f"everything: {error}"
            if changes and not takes_part:
                culprits.append(name)
            declared = "takes part" if takes_part else "observes"
            rows.append((name, str(hook["kind"]), declared, changes or "nothing"))
        names = ("hook", "class", "declared", "changes")
        hooks = [dict(zip(names, row, strict=True)) for row in rows]
        set_result({"iters": whole.iters, "hooks": hooks, "undeclared": culprits})
        show_table(COLUMNS, rows, ("leaving it out changes",))
        if culprits:
            print_error(
                f"declared as observing, but they change the training: {', '.join(culprits)}. A "
                "hook that is meant to do so declares takes_part_in_training = True."
            )
        return int(bool(culprits))

    def _train(self, folder: str, without: str | None) -> Ending:
        file = self.folder / f"{folder}.json"
        task = {"kill": None, "without": without, "file": str(file)}
        process = self.start("hookloop.cli.verify_hooks_process", folder, task)
        if process.returncode or not file.is_file():
            lines = process.stdout.splitlines()
            if without is not None:
                raise HookloopError(f"the training fails without it ({lines[-1] if lines else ''})")
            raise failure_of(process)
        return Ending(**json.loads(file.read_text(encoding="utf-8")))


def _first_of(names: Sequence[str]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{names[0]}{more}"
