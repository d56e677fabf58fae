"""``hookloop export``: write the model of a run for other programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from hookloop.cli.look.completing import run_argument
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_text, reporting
from hookloop.errors import HookloopError, nearest
from hookloop.runs.files import drafted
from hookloop.runs.shown import show_size

if TYPE_CHECKING:
    import torch

    from hookloop.checkpoint.export.export import Example
    from hookloop.config.loaded_model import LoadedModel

FORMATS = ("onnx", "torch.export", "safetensors", "torchscript")


@click.command("export", short_help="Write a run's model as ONNX, torch.export or safetensors.")
@run_argument
@click.option(
    "--format",
    "kind",
    type=click.Choice(FORMATS),
    default="onnx",
    show_default=True,
    help="What to write.",
)
@click.option(
    "--checkpoint",
    metavar="best|last|FILE",
    help="The weights; by default the best where one is kept, else the last.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="The file to write; by default model.onnx, .pt2, .safetensors or .pt in RUN.",
)
@click.option(
    "--input-shape",
    "shapes",
    multiple=True,
    metavar="1,3,32,32[:DTYPE]",
    help="Trace with random inputs of this shape instead of a batch of the run's data. Give it "
    "once for each input of the model.",
)
@reporting
def command(
    run: Path,
    kind: str,
    checkpoint: str | None,
    output: Path | None,
    shapes: tuple[str, ...],
) -> int:
    """Write the model of RUN, the directory of a run, for other programs.

    The model is built from the run's config, which is code: export only runs that you trust. What
    was written is run again and compared with the model, where that is possible.
    """
    from hookloop.checkpoint.export.export import SUFFIXES, write_model
    from hookloop.checkpoint.export.export_check import compare
    from hookloop.config.loaded_model import load_model

    path = output if output is not None else run / f"model{SUFFIXES[kind]}"
    if not path.parent.is_dir():
        raise HookloopError(f"There is no directory '{path.parent}' to write '{path.name}' into.")
    made = load_model(run, checkpoint=checkpoint, device="cpu")
    example, source = (None, "") if kind == "safetensors" else _example(made, shapes)
    try:
        with drafted(path) as draft:  # A program that computes something else is not kept.
            takes_any = write_model(made.model, draft, kind, example, made.metadata())
            difference = None if example is None else compare(made.model, draft, kind, example)
    except OSError as error:
        raise HookloopError(f"'{path}' cannot be written: {error.strerror or error}.") from error
    result: dict[str, object] = {
        "file": str(path),
        "format": kind,
        "bytes": path.stat().st_size,
        "checkpoint": made.chosen.path,
        "kind": made.chosen.kind,
        "weights": made.chosen.part,
        "example": source,
        "any_batch_size": takes_any,
        "difference": difference,
        "metadata": made.metadata(),
    }
    set_result(result)
    print_text(_describe(result, made))
    return 0


def _describe(result: dict[str, object], made: LoadedModel) -> str:
    size = show_size(cast("int", result["bytes"]))
    lines = [f"{result['file']}: {result['format']}, {size}, {made.chosen}."]
    if made.chosen.others:
        lines.append(f"  Also the best, by another metric: {', '.join(made.chosen.others)}.")
    if result["format"] == "safetensors":
        return lines[0] if len(lines) == 1 else "\n".join(lines)
    batch = {True: "any number of samples", False: "only as many samples as the example", None: ""}
    taken = batch[result["any_batch_size"]]  # type: ignore[index]
    lines.append(f"  traced with {result['example']}{f'; it takes {taken}' if taken else ''}.")
    difference = result["difference"]
    lines.append(
        "  not run: the package onnxruntime is not installed."
        if difference is None
        else f"  run again: its output differs from the model's by at most {difference:.1g} "
        "of the largest value."
    )
    return "\n".join(lines)


def _example(made: LoadedModel, shapes: tuple[str, ...]) -> tuple[Example, str]:
    from hookloop.checkpoint.export.export import Example, at_least_two
    from hookloop.data.batch import size_of

    if shapes:
        inputs: object = tuple(map(_zeros, shapes))
        source = f"random inputs of {' and '.join(shapes)}"
    else:
        inputs, key = made.example_inputs()
        # By name, so that inputs that are there for the loss, such as labels, are seen.
        named = f" ({', '.join(map(str, inputs))})" if isinstance(inputs, Mapping) else ""
        source = f"a batch of {key}{named}"
    return Example.of(at_least_two(inputs, size_of(inputs))), source


def _zeros(text: str) -> torch.Tensor:
    """Return random numbers of a shape, or zeros if they are whole numbers."""
    import torch

    shape, _, name = text.partition(":")
    try:
        sizes = [int(size) for size in shape.split(",")]
    except ValueError as error:
        raise click.BadParameter(
            f"'{text}' is not a shape such as 1,3,32,32.", param_hint="--input-shape"
        ) from error
    dtype = getattr(torch, name or "float32", None)
    if not isinstance(dtype, torch.dtype):
        hint = nearest(
            name, [key for key in vars(torch) if isinstance(vars(torch)[key], torch.dtype)]
        )
        raise click.BadParameter(
            f"'{name}' is not a type of torch.{hint}", param_hint="--input-shape"
        )
    # Random numbers of one seed: the program does not depend on them, and a file should be the
    # same each time.
    generator = torch.Generator().manual_seed(0)
    if not dtype.is_floating_point:
        return torch.zeros(sizes, dtype=dtype)  # Zero is valid as an index, and as a flag.
    return torch.randn(sizes, generator=generator).to(dtype)
