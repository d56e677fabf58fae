"""Names of checkpoints are spelled in one module; whatever else needs one asks it."""

import ast
import re
from pathlib import Path

import hookloop
from hookloop.runs.checkpoint_names import (
    best_name,
    checkpoint_name,
    is_checkpoint_name,
    is_of_exception,
)

SOURCE = Path(hookloop.__file__).parent
A_NAME = re.compile(
    r"\S*\.pth|last_checkpoint|checkpoints\.json|manifest\.json|(best|epoch|exception_iter)_|iter_"
)
"""A name, or the beginning of one that an f-string completes."""

OTHERS = {
    "hooks/measuring/snapshot_memory.py": {"iter_"},  # Pictures of the memory.
    "hooks/guarding/dump_on_exception.py": {"exception_iter_"},  # Tensors beside such a checkpoint.
    "short_runs/replay.py": {"replay_end.pth"},  # Where a replay ends, in a scratch directory.
    "testing.py": {"before.pth"},  # A name that a user would give.
}


def spelled(path):
    tree = ast.parse(path.read_text())
    prose = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
        if A_NAME.fullmatch(node.value)
    }


def test_no_other_module_spells_the_name_of_a_checkpoint():
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        # The dialects have the names of the systems whose scripts they run.
        if name == "runs/checkpoint_names.py" or name.startswith("dialects/"):
            continue
        if extra := spelled(path) - OTHERS.get(name, set()):
            found[name] = extra
    assert not found


def test_the_names_that_are_made_are_recognized():
    regular, failed = checkpoint_name("iter", 5), checkpoint_name("exception_iter", 7)
    for name in (regular, failed, best_name("x/acc", regular)):
        assert is_checkpoint_name(name)
    assert is_of_exception(failed) and not is_of_exception(regular)
