"""The runs of a directory as a tree: which came from which, when, and what was changed there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hookloop.runs.identity import Parent, read_identity
from hookloop.runs.interventions import read_interventions
from hookloop.runs.layout import RunDir
from hookloop.runs.lineage import find_parent
from hookloop.runs.reader import RunSummary, list_runs

END_OF_FORK = "end_of_fork"
"""The name of the hook that a fork of so many iterations has more than its parent."""


@dataclass(frozen=True)
class Rewind:
    """Where a run went back: the branch that it has left.

    Attributes:
        begun: The iteration with which the new branch begins.
        ended: The last iteration of the one that was left.
        skip: The iterations whose batches were left out.
        reason: Why.
        verdict: What a diagnosis has found: ``batch``, ``weights`` or ``arithmetic``.
    """

    begun: int
    ended: int
    skip: tuple[int, ...] = ()
    reason: str = ""
    verdict: str = ""


@dataclass(frozen=True)
class Branch:
    """A run in the tree.

    Attributes:
        run: Its summary.
        run_id: Its id.
        begun: The iteration at which it left its parent; None without one.
        parent: The checkpoint that it began with.
        changed: What was changed there: the key, the old value and the new one.
        rewinds: Where it went back.
        children: The runs that came from it, in the order of their iterations.
        note: What is missing of its past.
    """

    run: RunSummary
    run_id: str | None
    begun: int | None
    parent: Parent | None
    changed: Sequence[tuple[str, object, object]]
    rewinds: Sequence[Rewind]
    children: list[Branch] = field(default_factory=list)
    note: str = ""

    def walk(self) -> Iterator[Branch]:
        """Yield the run and all that came from it."""
        yield self
        for child in self.children:
            yield from child.walk()


def read_tree(directory: str | Path) -> list[Branch]:
    """Return the runs of a directory that come from no other one in it, with their branches."""
    found = {run.path.resolve(): _branch(run) for run in list_runs(directory)}
    roots = []
    for path, branch in found.items():
        home = find_parent(RunDir(path), branch.parent) if branch.parent is not None else None
        above = found.get(home.path.resolve()) if home is not None else None
        if above is None or _leads_to(above, branch):  # A circle is damage.
            roots.append(branch)
        else:
            above.children.append(branch)
    for branch in found.values():
        branch.children.sort(key=lambda one: (one.begun or 0, one.run.name))
    return roots


def _leads_to(above: Branch, branch: Branch) -> bool:
    return any(one is above for one in branch.walk())


def _branch(run: RunSummary) -> Branch:
    home = RunDir(run.path)
    parent, begun, note = run.parent, None, ""
    if parent is not None:
        begun = parent.iter
        if find_parent(home, parent) is None:
            note = f"its parent is not there: {parent}"
    return Branch(
        run,
        read_identity(home).run_id,
        begun,
        parent,
        list(_changes(home, parent)),
        _rewinds(home),
        note=note,
    )


def _changes(run: RunDir, parent: Parent | None) -> Iterator[tuple[str, object, object]]:
    """Yield what was changed when the run left its parent."""
    if parent is None:
        return
    known = False
    for line in _lines(run):
        if (line["what"], line.get("how"), line["iter"]) == ("change", "resumed", parent.iter):
            known = True
            key, old, new = str(line.get("key")), line.get("old"), line.get("new")
            is_end = key.startswith(f"hooks.{END_OF_FORK}")
            if is_end or (key == "hooks" and _but_for_end(old) == _but_for_end(new)):
                continue
            yield key, old, new
    if not known:  # It was not trained yet, or it is of a script.
        yield from ((name, None, None) for name in parent.changed)


def is_end_of_fork(hook: object) -> bool:
    """Return whether an entry of a list of hooks is the one that ends a fork."""
    return isinstance(hook, Mapping) and hook.get("name") == END_OF_FORK


def _but_for_end(hooks: object) -> object:
    if isinstance(hooks, list):
        hooks = [one for one in hooks if not is_end_of_fork(one)]
    return hooks or None


def _rewinds(run: RunDir) -> list[Rewind]:
    found: list[Rewind] = []
    for line in _lines(run):
        if line["what"] == "rewind":
            begun, ended, skip = line["iter"], line.get("from"), line.get("skip")
            listed = skip if isinstance(skip, list) else []
            found.append(
                Rewind(
                    begun if isinstance(begun, int) else 0,
                    ended if isinstance(ended, int) else 0,
                    tuple(one for one in listed if isinstance(one, int)),
                    str(line.get("reason") or ""),
                )
            )
        elif line["what"] == "diagnosis" and found:
            found[-1] = replace(found[-1], verdict=str(line.get("verdict") or ""))
    return found


def _lines(run: RunDir) -> list[dict[str, object]]:
    try:
        return read_interventions(run)
    except OSError:
        return []
