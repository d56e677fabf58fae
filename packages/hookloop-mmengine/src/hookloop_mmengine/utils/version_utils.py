"""``mmengine.utils.version_utils``: versions that can be compared."""

from __future__ import annotations

import re

_VERSION = re.compile(
    r"v?(?:\d+!)?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<kind>alpha|beta|preview|pre|rc|a|b|c)[-_.]?(?P<pre>\d*))?"
    r"(?P<post>-\d+|[-_.]?(?:post|rev|r)[-_.]?\d*)?"
    r"(?P<dev>[-_.]?dev[-_.]?\d*)?"
    r"(?:\+[a-z0-9]+(?:[-_.][a-z0-9]+)*)?$"
)
_BEFORE = {"a": -3, "b": -2, "c": -1, "r": -1, "p": -1}


def digit_version(version_str: str, length: int = 4) -> tuple[int, ...]:
    """Return a version as numbers: those of the release, and two for what comes before or after it.

    >>> digit_version("2.1.0") > digit_version("2.1.0rc1") > digit_version("2.0.1+cu118")
    True
    """
    if "parrots" in version_str:
        raise AssertionError(f"{version_str} is not the version of a package.")
    found = _VERSION.match(version_str.strip().lower())
    if found is None:
        raise ValueError(f"Invalid version: '{version_str}'")
    release = [int(number) for number in found["release"].split(".")][:length]
    release += [0] * (length - len(release))
    if found["kind"] is not None:
        # By the first letter: "alpha" is "a", and "c", "rc" and "preview" are one.
        return (*release, _BEFORE[found["kind"][0]], int(found["pre"] or 0))
    if found["dev"] is not None:
        return (*release, -4, 0)
    if found["post"] is not None:
        return (*release, 1, int(re.sub(r"\D", "", found["post"]) or 0))
    return (*release, 0, 0)
