"""Whether the package of a plug-in belongs to this version of the engine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hookloop.version import VERSION

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_NEEDS = re.compile(r"hookloop\s*==\s*([\d.]+)\.\*")


def misfit(entry: EntryPoint) -> str | None:
    """Return why a plug-in does not fit this engine, and what to install; None if it fits.

    A package that is released together with the engine requires ``hookloop==0.3.*``. pip holds
    that when it installs the package, but not when it installs another engine afterwards.
    """
    if entry.dist is None:
        return None
    for requirement in entry.dist.requires or ():
        needed = _NEEDS.match(requirement)
        if needed is not None and not f"{VERSION}.".startswith(f"{needed[1]}."):
            series = ".".join(VERSION.split(".")[:2])
            return (
                f"{entry.dist.name} {entry.dist.version} needs hookloop {needed[1]}.*, and this is "
                f"{VERSION}: pip install '{entry.dist.name}=={series}.*'"
            )
    return None
