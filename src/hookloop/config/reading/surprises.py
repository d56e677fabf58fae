"""Find values that YAML 1.1 reads differently than they look: ``010``, ``12:30:00``, ``NO``.

They keep their meaning, because files rely on it; the user is warned, with the line.
"""

from __future__ import annotations

import re

import yaml

_OCTAL = re.compile(r"[-+]?0[0-7_]+")
_CLOCK = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")
_OTHER_OCTAL = re.compile(r"[-+]?0o[0-7_]+")
_BOOLEAN = re.compile(r"(?i:yes|no|on|off)")


def surprise(node: yaml.Node, value: object) -> str | None:
    """Return a warning if a value was read as something that it does not look like.

    Args:
        node: The scalar as it is written.
        value: The value that was read.

    >>> surprise(yaml.compose("NO"), False)
    "NO is read as false: write false, or 'NO' for the text."
    """
    if not isinstance(node, yaml.ScalarNode) or node.style is not None:  # Quotes make it clear.
        return None
    text = str(node.value)
    if isinstance(value, bool):
        word = str(value).lower()
        if _BOOLEAN.fullmatch(text):
            return f"{text} is read as {word}: write {word}, or '{text}' for the text."
    elif isinstance(value, int | float) and _CLOCK.fullmatch(text):
        return f"{text} is read as {value}, to the base of 60: write '{text}' for the text."
    # Zeros alone are 0 in any base.
    elif isinstance(value, int) and _OCTAL.fullmatch(text) and text.strip("-+0_"):
        plain = text.lstrip("-+0_")
        sign = "-" if text.startswith("-") else ""
        return (
            f"{text} is read as {value}, in octal: write {sign}{plain}, or '{text}' for the text."
        )
    elif isinstance(value, str) and _OTHER_OCTAL.fullmatch(text):
        return f"{text} is read as text: write {text.replace('0o', '0')} for {int(text, 8)}."
    return None
