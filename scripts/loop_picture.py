"""Draw docs/images/loop.svg, the loop with every mount point: ``python scripts/loop_picture.py``.

What is drawn is checked against the table of mount points, and a test holds the committed picture
against what this draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from hookloop.engine.points import POINTS

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "loop.svg"

ROW, PAD, TITLE = 22, 12, 20
WIDTH = 330
COLOURS = ("#ffffff", "#f6f8fa", "#ddf4ff", "#b6e3ff", "#fff8c5")


@dataclass
class Box:
    """A part of the run: points by their names, other boxes, and work of the loop in ``(...)``."""

    title: str
    parts: list[str | Box] = field(default_factory=list)

    @property
    def height(self) -> int:
        """What it takes on the picture, with everything in it."""
        return TITLE + PAD + sum(p.height + 8 if isinstance(p, Box) else ROW for p in self.parts)


WORK = {
    "after_forward": "(forward)",
    "after_loss": "(loss)",
    "after_backward": "(backward)",
    "after_update": "(optimizer steps)",
}
"""What the loop does before a point."""


def with_work(names: Iterable[str]) -> list[str | Box]:
    """Return points with the work of the loop between them."""
    return [part for name in names for part in (WORK.get(name), name) if part]


# What is within the update stands in the table alone.
MICROBATCH = [point.name for point in POINTS if point.within and not point.clock]
UPDATE = [point.name for point in POINTS if point.within and point.clock]


def evaluation(phase: str, title: str) -> Box:
    """Return the box of a validation, test or prediction."""
    last = "after_loss" if phase != "predict" else "after_forward"
    inner = MICROBATCH[: MICROBATCH.index(last) + 1]
    batch = Box("each batch", [f"before_{phase}_iter", *with_work(inner), f"after_{phase}_iter"])
    return Box(
        title,
        [
            f"before_{phase}",
            f"before_{phase}_epoch",
            batch,
            f"after_{phase}_epoch",
            f"after_{phase}",
        ],
    )


TRAINING = Box(
    "train()",
    [
        "before_run",
        "after_load_checkpoint",
        "before_train",
        Box(
            "each epoch",
            [
                "before_epoch",
                "before_train_epoch",
                Box(
                    "each iteration",
                    [
                        "before_train_iter",
                        Box("each microbatch", with_work(MICROBATCH)),
                        *with_work(UPDATE),
                        "(the iteration is counted)",
                        "after_train_iter",
                    ],
                ),
                "after_train_epoch",
                evaluation("val", "validation, when it is due"),
                "after_epoch",
                "after_epoch_profile",
            ],
        ),
        "after_train",
        "after_run",
    ],
)
OTHERS = [
    evaluation("test", "test()"),
    evaluation("predict", "predict()"),
    Box("around every save", ["before_save_checkpoint", "(written)", "after_save_checkpoint"]),
    Box("only if it happens", ["after_rewind", "on_stop", "on_exception"]),
]


def names(box: Box) -> Iterator[str]:
    """Yield the points of a box in the order in which they fire."""
    for part in box.parts:
        if isinstance(part, Box):
            yield from names(part)
        elif not part.startswith("("):
            yield part


def check() -> None:
    """Raise unless every point of the table is drawn, in the table's order."""
    drawn = [name for box in (TRAINING, *OTHERS) for name in names(box)]
    first = list(dict.fromkeys(name for name in drawn if name != "after_run"))
    table = [point.name for point in POINTS if point.name != "after_run"]
    if first != table or "after_run" not in drawn:
        raise ValueError(f"the picture has {first}, the table {table}")


def draw_box(box: Box, x: int, y: int, width: int, depth: int) -> Iterator[str]:
    """Yield the elements of a box and all that is in it."""
    colour = COLOURS[depth % len(COLOURS)]
    size = f'x="{x}" y="{y}" width="{width}" height="{box.height}"'
    yield f'<rect {size} rx="6" fill="{colour}" stroke="#57606a"/>'
    yield f'<text x="{x + 10}" y="{y + 15}" class="title">{escape(box.title)}</text>'
    y += TITLE
    for part in box.parts:
        if isinstance(part, Box):
            yield from draw_box(part, x + PAD, y + 2, width - 2 * PAD, depth + 1)
            y += part.height + 8
        elif part.startswith("("):
            yield f'<text x="{x + 26}" y="{y + 15}" class="work">{escape(part[1:-1])}</text>'
            y += ROW
        else:
            yield f'<circle cx="{x + 16}" cy="{y + 11}" r="4" fill="#0969da"/>'
            yield f'<text x="{x + 26}" y="{y + 15}" class="point">{part}</text>'
            y += ROW


def draw() -> str:
    """Return the picture."""
    check()
    elements = list(draw_box(TRAINING, 10, 10, WIDTH, 0))
    x, y = WIDTH + 30, 10
    for box in OTHERS:
        elements += draw_box(box, x, y, WIDTH - 50, 1)
        y += box.height + 16
    height = max(TRAINING.height + 20, y)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {height}" '
        'role="img" aria-label="The loop with every mount point" '
        'font-family="Helvetica, Arial, sans-serif" font-size="13">'
    )
    style = (
        "<style>.title{font-weight:bold;fill:#1f2328}.point{font-family:monospace;fill:#0550ae}"
        ".work{font-style:italic;fill:#57606a}</style>"
    )
    back = f'<rect width="{2 * WIDTH}" height="{height}" fill="#ffffff"/>'
    return "\n".join([head, style, back, *elements, "</svg>\n"])


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
    print(f"wrote docs/images/{PICTURE.name}")
