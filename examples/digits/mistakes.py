"""A custom hook: the digits that the network gets wrong, drawn as text."""

from __future__ import annotations

import torch
from torch import Tensor

from hookloop import Hook, Run


class DrawMistakes(Hook):
    """Draw the digits that the latest validation or test got wrong.

    The files are ``mistakes_val.txt`` and ``mistakes_test.txt`` in the run directory.

    Args:
        limit: How many to draw at most.
    """

    def __init__(self, limit: int = 20) -> None:
        self.limit = limit
        self.pictures: list[str] = []

    def before_val_epoch(self, run: Run) -> None:
        self.pictures = []

    def before_test_epoch(self, run: Run) -> None:
        self.pictures = []

    def after_val_iter(self, run: Run) -> None:
        self.collect(run)

    def after_test_iter(self, run: Run) -> None:
        self.collect(run)

    def after_val(self, run: Run) -> None:
        self.write(run)

    def after_test(self, run: Run) -> None:
        self.write(run)

    def collect(self, run: Run) -> None:
        """Draw the mistakes in the current batch."""
        assert isinstance(run.output, Tensor)
        assert isinstance(run.batch, list)
        images, targets = run.batch
        guesses = run.output.argmax(dim=1)
        for index in torch.nonzero(guesses != targets).flatten().tolist():
            title = f"a {targets[index]}, classified as a {guesses[index]}"
            self.pictures.append(f"{title}\n{draw(images[index, 0])}")

    def write(self, run: Run) -> None:
        """Write the file of this phase."""
        # On many ranks, each has seen its part of the data, and the first one writes.
        pictures = [picture for part in run.gather(self.pictures) for picture in part]
        if run.world.is_main:
            file = run.dir / f"mistakes_{run.phase}.txt"
            file.write_text("\n".join(pictures[: self.limit]), encoding="utf-8")


def draw(image: Tensor) -> str:
    """Draw an image as characters, two to a pixel, the brighter the denser."""
    shades = " .:*#"
    levels = (image - image.min()) / (image.max() - image.min()) * (len(shades) - 1)
    return "".join(
        "".join(shades[level] * 2 for level in row).rstrip() + "\n"
        for row in levels.round().long().tolist()
    )
