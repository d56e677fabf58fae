"""Python's standard library as text: the functions as one stream, the docstrings as another.

Nothing is downloaded. The text is that of the Python which runs this, so that another version
gives other numbers.
"""

from __future__ import annotations

import ast
import inspect
import string
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor
from torch.utils.data import DataLoader

Kind = Literal["code", "prose"]
Split = Literal["train", "val"]
Batch = dict[str, Tensor]

ALPHABET = "\n" + "".join(sorted(set(string.printable) - set(string.whitespace) | {" "}))
END = 0
"""The token at the beginning and at the end of a text; the characters follow."""

VOCABULARY = 1 + len(ALPHABET)
IGNORED = -100
"""The target of a position that does not count: padding."""

SHORTEST = 40
_NUMBERS = {character: 1 + number for number, character in enumerate(ALPHABET)}


def encode(text: str) -> list[int]:
    """Turn a text into tokens; characters outside the alphabet are left out."""
    return [_NUMBERS[character] for character in text if character in _NUMBERS]


def decode(tokens: Iterable[int]) -> str:
    """Turn tokens back into a text."""
    return "".join(ALPHABET[token - 1] for token in tokens if token != END)


@cache
def texts(kind: Kind, split: Split, modules: int | None = None) -> tuple[str, ...]:
    """Return the texts of one kind; every tenth module is held back for the validation.

    Args:
        kind: ``"code"`` for functions without their docstrings, ``"prose"`` for docstrings.
        split: ``"train"`` or ``"val"``, which have no module in common.
        modules: Read only so many modules.
    """
    folder = Path(sysconfig.get_path("stdlib"))
    own = sorted(folder.glob("*.py"))[:modules]
    files = [file for place, file in enumerate(own) if (place % 10 == 9) == (split == "val")]
    found = (text for file in files for text in _texts_in(file, kind))
    return tuple(dict.fromkeys(text for text in found if len(text) >= SHORTEST))


def _texts_in(file: Path, kind: Kind) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Some modules have escapes that Python warns of.
        tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            continue
        words = ast.get_docstring(node, clean=False)
        if kind == "prose" and words is not None:
            yield inspect.cleandoc(words)
        elif kind == "code" and isinstance(node, ast.FunctionDef):
            if words is not None:
                node.body = node.body[1:] or [ast.Pass()]
            yield ast.unparse(node)


def collate(samples: list[list[int]]) -> Batch:
    """Make a batch of texts of different length: what is missing is padding, which does not count.

    Position by position, ``targets`` has the token that follows the one in ``input_ids``.
    """
    longest = max(map(len, samples)) - 1
    inputs = torch.full((len(samples), longest), END)
    targets = torch.full((len(samples), longest), IGNORED)
    for row, sample in enumerate(samples):
        inputs[row, : len(sample) - 1] = torch.tensor(sample[:-1])
        targets[row, : len(sample) - 1] = torch.tensor(sample[1:])
    return {"input_ids": inputs, "targets": targets}


def count_tokens(batch: Batch) -> int:
    """Return the number of tokens that count."""
    return int((batch["targets"] != IGNORED).sum())


def text_loader(
    kind: Kind,
    split: Split,
    *,
    context: int = 128,
    batch_size: int = 32,
    modules: int | None = None,
) -> DataLoader[list[int]]:
    """Load texts of one kind, cut into pieces of at most ``context`` tokens."""
    pieces: list[list[int]] = []
    for text in texts(kind, split, modules):
        tokens = [END, *encode(text), END]
        pieces += [tokens[at : at + context + 1] for at in range(0, len(tokens) - 1, context)]
    return DataLoader(
        pieces,  # type: ignore[arg-type] # a list is a data set
        batch_size=batch_size,
        shuffle=split == "train",
        collate_fn=collate,
    )
