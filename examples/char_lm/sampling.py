"""Two hooks that are connected only by a custom mount point."""

from __future__ import annotations

import torch

from hookloop import Hook, Point, Run

from char_model import CharModel
from language import words_of, write
from windows import decode, encode

AFTER_SAMPLE = Point("after_sample", "a text was drawn from the model", args=("text",))


class SampleText(Hook):
    """Let the model write after each validation, and fire ``after_sample`` with the result.

    It draws from its own generator, so that the random numbers of the training do not change.

    Args:
        length: Characters to draw.
        start: The text to continue.
        seed: The seed of the drawing, the same after each validation, so that texts are comparable.
    """

    def __init__(self, length: int = 200, start: str = "\n", seed: int = 0) -> None:
        self.length = length
        self.start = encode(start)
        self.seed = seed

    def after_val(self, run: Run) -> None:
        assert isinstance(run.model, CharModel)
        generator = torch.Generator(run.device).manual_seed(self.seed)
        drawn = run.model.generate(self.start.to(run.device), self.length, generator)
        run.fire("after_sample", decode(drawn))


class KeepSamples(Hook):
    """Append each sampled text to ``samples.txt`` in the run directory.

    It also puts the share of words that belong to the language into the metric store.
    """

    writes = ("sample/real_words",)

    def __init__(self) -> None:
        self.words = words_of(write(100_000)[0])

    def after_sample(self, run: Run, text: str) -> None:
        words = words_of(text[: text.rfind(" ")])  # The last word may be cut off.
        run.metrics.put("sample/real_words", len(words & self.words) / max(len(words), 1))
        if run.world.is_main:  # On many ranks, all of them have drawn the same text.
            with (run.dir / "samples.txt").open("a", encoding="utf-8") as file:
                file.write(f"--- iteration {run.progress.iter}\n{text}\n")
