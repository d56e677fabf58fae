"""Find random generators that data draws from and no checkpoint holds, without running any code.

They may be attributes of the data set or of a transform in it, variables in the closure of a
function, or variables of a module that the methods of the data set use.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from hookloop.objects.held import held_by, held_by_class, is_examined
from hookloop.objects.values import GENERATOR_TYPES

MOST = 20_000
"""How many parts are examined in total."""

DEPTH = 4
"""How far attributes of attributes are followed."""


def find_generators(
    holder: object, depth: int = DEPTH, *, besides: object = None
) -> Iterator[tuple[str, object]]:
    """Yield the generators that an object draws from, each with its path, the nearest first.

    Args:
        holder: The object.
        depth: How far attributes of attributes are followed.
        besides: A part of it that is not looked at.
    """
    # Breadth first and bounded: nested lists of numbers would take minutes, and generators are
    # near the top.
    queue = deque([("", holder, depth)])
    examined = 0
    while queue and examined < MOST:
        path, part, levels = queue.popleft()
        for name, value, _ in (*held_by(part), *held_by_class(type(part))):
            examined += 1
            if isinstance(value, GENERATOR_TYPES):
                yield f"{path}{name}", value
            elif levels and value is not besides and is_examined(value):
                queue.append((f"{path}{name}.", value, levels - 1))
