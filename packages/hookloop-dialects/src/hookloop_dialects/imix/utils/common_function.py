"""``imix.utils.common_function``: small functions that iMIX's files share."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping


def update_d1_with_d2(d1: MutableMapping[str, object], d2: Mapping[str, object] | None) -> None:
    """Add the items of the second mapping that the first one lacks."""
    for name, value in (d2 or {}).items():
        d1.setdefault(name, value)
