"""Docstrings of Python's standard library, labelled with the package that they are from.

Nothing is downloaded. The text is that of the Python which runs this, so that another version
gives other numbers.
"""

from __future__ import annotations

import ast
import inspect
import sysconfig
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal
from zlib import crc32

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from encoders import PADDING, Encoder, tokenizer_of

Split = Literal["train", "val", "test"]
Sample = tuple[str, int]

TOPICS = ("asyncio", "email", "http", "importlib", "logging", "multiprocessing", "unittest", "xml")
SPLITS: dict[Split, range] = {"train": range(6), "val": range(6, 7), "test": range(7, 10)}
"""Tenths of the docstrings."""

SHORTEST = 20


@cache
def samples(split: Split) -> tuple[Sample, ...]:
    """Return the first paragraphs of docstrings, each with the number of its package.

    A text that two packages have is left out. Which split has a text follows from the text.
    """
    topics: dict[str, set[int]] = {}
    for number, topic in enumerate(TOPICS):
        for text in _paragraphs(Path(sysconfig.get_path("stdlib"), topic)):
            topics.setdefault(text, set()).add(number)
    return tuple(
        (text, min(own))
        for text, own in topics.items()
        if len(own) == 1 and crc32(text.encode()) % 10 in SPLITS[split]
    )


def _paragraphs(package: Path) -> Iterator[str]:
    for file in sorted(package.rglob("*.py")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Some modules have escapes that Python warns of.
            tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
                text = inspect.cleandoc(ast.get_docstring(node) or "").partition("\n\n")[0]
                if len(text) >= SHORTEST:
                    yield " ".join(text.split())


def collate(batch: list[tuple[list[int], int]]) -> tuple[Tensor, Tensor]:
    """Make a batch of token numbers, as long as the longest text, and of topics."""
    longest = max(len(tokens) for tokens, _ in batch)
    numbers = torch.full((len(batch), longest), PADDING)
    for row, (tokens, _) in enumerate(batch):
        numbers[row, : len(tokens)] = torch.tensor(tokens)
    return numbers, torch.tensor([topic for _, topic in batch])


def docstring_loader(
    split: Split,
    *,
    encoder: Encoder = "minilm",
    batch_size: int = 32,
    longest: int = 24,
    most: int | None = None,
) -> DataLoader[tuple[list[int], int]]:
    """Load one split in batches; only the training split is shuffled.

    Args:
        split: ``"train"``, ``"val"`` or ``"test"``.
        encoder: The encoder whose tokens to make.
        batch_size: Texts in a batch.
        longest: Tokens of a text; the rest is cut off.
        most: Take at most so many texts, of all topics.
    """
    tokenize = tokenizer_of(encoder)
    own = samples(split)
    # They are in the order of the topics, of which a few samples should have all.
    few = own if most is None else own[:: -(-len(own) // most)]
    data = [(tokenize(text)[:longest], topic) for text, topic in few]
    return DataLoader(
        data,  # type: ignore[arg-type] # a list is a data set
        batch_size=batch_size,
        shuffle=split == "train",
        collate_fn=collate,
    )
