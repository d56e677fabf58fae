"""A model card: what a published model is, how it was trained, and how to load it.

What runs wrote is text of strangers: it is escaped, so that it stays text in the page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from hookloop.runs import plain_yaml
from hookloop.runs.shown import make_safe_line

LONGEST = 200
"""How many characters of a value are shown."""

MOST = 200
"""How many rows a table has."""

SHOWN = re.compile(
    r"python|torch|cuda|cudnn|driver|gpu|device|platform|system|git|commit|dirty|hookloop",
    re.IGNORECASE,
)
"""Entries of the environment that belong in a card. Others, such as host and command line, may tell
more than who publishes wants."""

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$>-])")

FRONT_MATTER = """\
---
library_name: hookloop
tags:
- hookloop
- pytorch
---
"""


@dataclass(frozen=True)
class Facts:
    """What a card tells.

    Attributes:
        name: The name of the model.
        weights: The file with the weights.
        about: The metadata of that file: checkpoint, iteration, metrics.
        config: The config to publish.
        summary: The summary of the run: final metrics, best values.
        environment: What the run recorded of its environment.
        seconds: How long the training took.
        parameters: How many numbers the weights have.
    """

    name: str
    weights: str
    about: Mapping[str, object]
    config: Mapping[str, object] = field(default_factory=dict)
    summary: Mapping[str, object] = field(default_factory=dict)
    environment: Mapping[str, object] = field(default_factory=dict)
    seconds: float | None = None
    parameters: int = 0


def escape(value: object) -> str:
    r"""Return a value as text that Markdown shows as it is, in one line.

    >>> print(escape("a|b <script> [x](y)"))
    a\|b &lt;script&gt; \[x\]\(y\)
    """
    line = make_safe_line(str(value), LONGEST).replace("&", "&amp;").replace("<", "&lt;")
    return _SPECIAL.sub(r"\\\1", line).replace("\\>", "&gt;")


def model_card(facts: Facts) -> str:
    """Return the card as Markdown, with the header that model hubs read."""
    sections = [
        FRONT_MATTER + f"\n# {escape(facts.name)}",
        _what_it_is(facts),
        "## Metrics\n\n" + _metrics(facts),
        "## How to load it\n\n" + _loading(facts),
    ]
    if facts.config:
        sections.append("## Config\n\n" + _block("yaml", plain_yaml.dump(facts.config)))
    if environment := _environment(facts.environment):
        sections.append("## Environment\n\n" + environment)
    return "\n\n".join(sections) + "\n"


def _what_it_is(facts: Facts) -> str:
    model = facts.config.get("model")
    kind = model.get("type") if isinstance(model, Mapping) else model
    about = facts.about
    rows = [
        ("model", kind),
        ("parameters and buffers", f"{facts.parameters:,}" if facts.parameters else None),
        ("checkpoint", about.get("checkpoint")),
        ("weights", "averaged" if about.get("weights") == "averaged" else None),
        ("iterations", about.get("iter")),
        ("epochs", about.get("epoch")),
        ("training", facts.summary.get("status")),
        ("training time", None if facts.seconds is None else _time(facts.seconds)),
        ("processes", facts.summary.get("ranks")),
        ("trained with", f"hookloop {about.get('hookloop')}"),
        ("SHA-256 of the config", about.get("config_sha256")),
    ]
    return _table(("", ""), [(name, value) for name, value in rows if value is not None])


def _metrics(facts: Facts) -> str:
    here, final = (_mapping(source.get("metrics")) for source in (facts.about, facts.summary))
    best = _mapping(facts.summary.get("best"))
    names = [name for name in dict.fromkeys([*here, *final, *best]) if not name.endswith("_time")]
    rows = []
    for name in names:
        top = _mapping(best.get(name))
        value = f"{_number(top.get('value'))} (epoch {top.get('epoch')})" if top else ""
        rows.append((name, _number(here.get(name)), _number(final.get(name)), value))
    if not rows:
        return "The run recorded none."
    return _table(("metric", "this checkpoint", "end of the training", "best"), rows)


def _loading(facts: Facts) -> str:
    is_plain = facts.weights.endswith(".safetensors")
    read = f'load_file("{facts.weights}")' if is_plain else f'torch.load("{facts.weights}")'
    first = "from safetensors.torch import load_file" if is_plain else "import torch"
    made = "`config.yaml` says what the model is made of. " if facts.config else ""
    further = (
        "\n\nTo train on from these weights, give them to a config: "
        f"`hookloop train config.yaml setup.load_from={facts.weights}`. A config is code: read it "
        "first."
    )
    return (
        f"{made}Make the model, and load the weights with torch alone:\n\n"
        + _block("python", f"{first}\n\nmodel = ...\nmodel.load_state_dict({read})\n")
        + "\n\nor with hookloop, which explains names and shapes that do not fit:\n\n"
        + _block(
            "python",
            f'from hookloop import Pretrained\n\nPretrained("{facts.weights}").load_into(model)\n',
        )
        + (further if facts.config else "")
    )


def _environment(environment: Mapping[str, object]) -> str:
    rows: list[tuple[object, object]] = []
    for name, value in environment.items():
        if isinstance(value, Mapping) and name != "packages" and SHOWN.search(name):
            rows += [(f"{name}: {key}", item) for key, item in value.items() if _is_plain(item)]
        elif SHOWN.search(name) and (_is_plain(value) or isinstance(value, list)):
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            rows.append((name, shown))
    packages = _mapping(environment.get("packages"))
    rows += [(name, version) for name, version in packages.items() if _is_plain(version)]
    return _table(("", ""), rows) if rows else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(map(escape, row))} |" for row in rows[:MOST]]
    return "\n".join(lines)


def _block(language: str, text: str) -> str:
    """Return a block of code; its fence is longer than any row of backticks in the text."""
    longest = max((len(found) for found in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    safe = "\n".join(make_safe_line(line, 10_000) for line in text.rstrip("\n").split("\n"))
    return f"{fence}{language}\n{safe}\n{fence}"


def _mapping(value: object) -> Mapping[str, object]:
    return {str(k): v for k, v in value.items()} if isinstance(value, Mapping) else {}


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else str(timedelta(seconds=round(seconds)))


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, int | float) else str(value or "")


def _is_plain(value: object) -> bool:
    return value is not None and isinstance(value, bool | int | float | str)
