"""``mmengine.version``: the version whose behaviour is followed."""

from __future__ import annotations

__all__ = ["__version__", "parse_version_info", "version_info"]

__version__ = "0.10.7"


def parse_version_info(version_str: str) -> tuple[int | str, ...]:
    """Return the parts of a version, with ``rc1`` as a part of its own."""
    parts: list[int | str] = []
    for part in version_str.split("."):
        number, mark, rest = part.partition("rc")
        parts += [int(number)] if number.isdigit() else []
        parts += [f"rc{rest}"] if mark else []
    return tuple(parts)


version_info = parse_version_info(__version__)
