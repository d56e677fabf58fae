"""A made-up language whose entropy is known: a lower bound for the loss of a model.

The text is drawn from a small grammar: nothing is downloaded, every seed gives another text, and
each choice adds exactly the logarithm of its number of alternatives to the text's information.
"""

from __future__ import annotations

import math
import random
import re

GRAMMAR: dict[str, tuple[str, ...]] = {
    "sentence": (
        "{who} {does} {what}.",
        "{when}, {who} {does} {what}.",
        "{who} {does} {what}, and {who} {does} {what}.",
        "{who} {does} {what}, because {who} {does} {what}.",
        "does {who} know that {who} {does} {what}?",
    ),
    "when": (
        "after every epoch",
        "before the first step",
        "late at night",
        "once the loss is low",
        "while the fans hum",
        "in the long run",
        "on a cold morning",
        "as the curve bends",
    ),
    "who": ("the {kind} {actor}", "the {actor}", "a {kind} {actor}", "every {actor}"),
    "kind": ("patient", "small", "curious", "frozen", "noisy", "gentle", "deep", "careful"),
    "actor": (
        "hook",
        "loop",
        "gradient",
        "weight",
        "optimizer",
        "batch",
        "sampler",
        "writer",
        "metric",
        "model",
        "tensor",
        "schedule",
        "layer",
        "neuron",
        "checkpoint",
        "kernel",
    ),
    "does": (
        "follows",
        "counts",
        "remembers",
        "forgets",
        "carries",
        "measures",
        "mends",
        "watches",
        "draws",
        "repeats",
        "names",
        "smooths",
        "keeps",
        "waits for",
        "listens to",
        "learns from",
    ),
    "what": ("the {thing}", "the {kind} {thing}", "a {thing} of {thing}s", "its own {thing}"),
    "thing": (
        "path",
        "number",
        "valley",
        "seed",
        "signal",
        "shadow",
        "mountain",
        "corner",
        "letter",
        "mirror",
        "bridge",
        "river",
        "winter",
        "garden",
        "lantern",
        "pattern",
    ),
}

_SLOT = re.compile(r"\{(\w+)\}")

ALPHABET = "\n" + "".join(
    sorted(
        {letter for forms in GRAMMAR.values() for form in forms for letter in _SLOT.sub("", form)}
    )
)


def write(length: int, seed: int = 0) -> tuple[str, float]:
    """Write at least ``length`` characters.

    Returns:
        The text, and its information in nats per character: no model of the language can have a
        lower expected loss.
    """
    dice = random.Random(seed)
    information = 0.0

    def expand(symbol: str) -> str:
        nonlocal information
        forms = GRAMMAR[symbol]
        information += math.log(len(forms))
        return _SLOT.sub(lambda slot: expand(slot[1]), dice.choice(forms))

    sentences: list[str] = []
    written = 0
    while written < length:
        sentences.append(expand("sentence") + "\n")
        written += len(sentences[-1])
    return "".join(sentences), information / written


def words_of(text: str) -> set[str]:
    """Collect the words of a text, without punctuation."""
    return set(re.findall(r"[a-z]+", text))
