"""The page of evidence: what the README claims, and what its commands have shown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

FILES = Path(__file__).parents[2] / "docs" / "evidence"

PAGE = """\
# Evidence

What the README claims, each with the command that shows it and what that command showed last.
`make evidence CLAIM={first}` measures a claim again; it fails if the claim does not hold. The files
beside this page have all figures. A test rejects figures that are older than the release before
this one.

{claims}
"""

CLAIM = """\
## {title}

{claim}

Shown by `{command}`:

{figures}

Measured on {date} at commit `{commit}`, in {seconds:.0f} s: hookloop {hookloop}, Python {python},
torch {torch}, {system} on {processor} with {processors} processors, load {load} before.
All figures: [{name}.json](evidence/{name}.json)."""


def page() -> str:
    """Write the page from the files."""
    found = {
        path.stem: json.loads(path.read_text("utf-8")) for path in sorted(FILES.glob("*.json"))
    }
    claims = "\n\n".join(_claim(name, one) for name, one in found.items())
    return PAGE.format(first=next(iter(found), "exactness"), claims=claims)


def _claim(name: str, found: Mapping[str, object]) -> str:
    machine, versions = found["machine"], found["versions"]
    assert isinstance(machine, dict)
    assert isinstance(versions, dict)
    return CLAIM.format(
        title=name.replace("-", " ").capitalize(),
        name=name,
        claim=found["claim"],
        command=found["command"],
        figures="\n".join(_lines(found["figures"])),
        date=found["date"],
        commit=str(found["commit"])[:10],
        seconds=found["seconds"],
        load=machine["load before"],
        **{key: machine[key] for key in ("system", "processor", "processors")},
        **versions,
    )


def _lines(figures: object, depth: int = 0) -> Iterator[str]:
    """Yield a nested list: names with values, and what lists hold."""
    indent = "  " * depth
    assert isinstance(figures, dict)
    for key, value in figures.items():
        if isinstance(value, Mapping):
            yield f"{indent}- {key}:"
            yield from _lines(value, depth + 1)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            yield f"{indent}- {key}: {'; '.join(map(str, value)) or 'none'}"
        else:
            yield f"{indent}- {key}: {value}"
