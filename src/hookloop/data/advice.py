"""How to fix what torch rejects most often in a first training: shapes, types and labels.

torch says what does not fit. What was given is in the frames of the traceback, so that the advice
can name it. A message that is not known here gets no advice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from types import TracebackType

import torch
from torch import Tensor, nn

from hookloop.errors import HookloopError
from hookloop.every import count_of


@dataclass(frozen=True)
class Failure:
    """What is known of a call that failed.

    Attributes:
        words: What torch's message was found to say.
        module: The innermost module that was called, if there was one.
        given: The tensors of the innermost call, by the names of torch's arguments.
    """

    words: re.Match[str]
    module: nn.Module | None
    given: Mapping[str, Tensor]

    def number(self, group: int = 1) -> int:
        """Return a number of the message."""
        return int(self.words[group])


def note_fix(error: Exception) -> None:
    """Add to an error of torch how to fix it, where that is known; for an error being handled."""
    if isinstance(error, HookloopError):
        return
    text = str(error)
    for pattern, advise in _ADVICE:
        if (words := pattern.search(text)) is None:
            continue
        module, given = _innermost(error.__traceback__)
        if advice := advise(Failure(words, module, given)):
            error.add_note(f"To fix it: {advice}")
        return


def _innermost(
    traceback: TracebackType | None,
) -> tuple[nn.Module | None, dict[str, Tensor]]:
    """Return the innermost module in a traceback, and the tensors that torch was called with."""
    module: nn.Module | None = None
    given: dict[str, Tensor] = {}
    for frame_locals in _locals_of(traceback):
        owner = frame_locals.get("self")
        module = owner if isinstance(owner, nn.Module) else module
        found = {name: frame_locals.get(name) for name in ("input", "target")}
        tensors = {name: one for name, one in found.items() if isinstance(one, Tensor)}
        given = tensors or given
    return module, given


def _locals_of(traceback: TracebackType | None) -> Iterator[Mapping[str, object]]:
    while traceback is not None:
        yield traceback.tb_frame.f_locals
        traceback = traceback.tb_next


# --- labels ---------------------------------------------------------------------------------------


def _label_out_of_range(failure: Failure) -> str:
    label, output, target = failure.number(), *map(failure.given.get, ("input", "target"))
    if output is None or target is None:
        return f"the label {label} is not a class: the output has too few numbers per sample."
    classes = output.shape[min(1, output.ndim - 1)]
    lowest, highest = int(target.min()), int(target.max())
    known = (
        f"the output has {classes} classes, so labels are 0 to {classes - 1}; those of this batch "
        f"are {lowest} to {highest}"
    )
    if lowest < 0:
        return f"{known}. If {lowest} marks what to leave out, give ignore_index={lowest}."
    begins = ", or subtract 1 from labels that begin at 1" if lowest == 1 else ""
    return f"{known}. Let the last layer have {highest + 1} outputs or more{begins}."


def _label_type(failure: Failure) -> str:
    output = failure.given.get("input")
    advice = "labels are whole numbers: write targets.long()."
    if output is not None and output.ndim > 1 and output.shape[1] == 1:
        advice += " For a regression, use MSELoss; for two classes, BCEWithLogitsLoss."
    return advice


def _label_shape(failure: Failure) -> str:
    target, output = failure.given.get("target"), failure.given.get("input")
    if target is not None and target.ndim == 2 and target.shape[1] == 1:
        return "labels have the shape [samples]; these have [samples, 1]: write targets.squeeze(1)."
    if target is not None and output is not None and target.shape == output.shape:
        return (
            "labels have the shape [samples]; these are one-hot: write targets.argmax(1), or "
            "targets.float() for probabilities."
        )
    return "labels have the shape [samples], a whole number for each."


def _label_count(failure: Failure) -> str:
    # A whole batch of outputs in one dimension is taken as the classes of one sample.
    counts = failure.words.groups() if failure.words.re.groups == 2 else ("1", failure.words[1])
    return (
        f"the output has {count_of(int(counts[0]), 'sample')} and the targets {counts[1]}: the "
        "model, or the loss, changes the first dimension, often with a view or flatten."
    )


def _float_targets(failure: Failure) -> str:
    return "this loss compares numbers with a point, and the targets are whole: targets.float()."


def _unequal_targets(failure: Failure) -> str | None:
    output, target = failure.given.get("input"), failure.given.get("target")
    if output is None or target is None:
        return None
    if output.numel() == target.numel() and output.ndim == target.ndim + 1:
        point = "" if target.is_floating_point() else ".float()"
        also = ", with targets.float()" if point else ""
        return f"write outputs.squeeze(-1){also}, or targets.unsqueeze(-1){point}."
    if output.numel() == target.numel():
        return "write targets.reshape(outputs.shape), if both have the samples in the same order."
    if target.ndim == 1 and output.ndim == 2 and output.shape[0] == target.shape[0]:
        return (
            f"the output has {output.shape[1]} numbers per sample and there is one target: for "
            "classes, use CrossEntropyLoss with targets.long()."
        )
    return None


def _probabilities(failure: Failure) -> str:
    return "BCELoss takes probabilities: use BCEWithLogitsLoss, or end the model with a Sigmoid."


def _swapped(failure: Failure) -> str | None:
    output, target = failure.given.get("input"), failure.given.get("target")
    if output is None or output.is_floating_point():
        return None
    if target is not None and target.is_floating_point():
        return (
            "the loss gets the targets in place of the outputs: it is called with both, in the "
            "order (outputs, targets)."
        )
    return "the loss takes outputs, which are numbers with a point, and gets whole numbers."


def _single_sample(failure: Failure) -> str | None:
    given = failure.given.get("input")
    if given is None or given.shape[0] != 1:
        return None
    return (
        "batch norm needs several samples in training, and this batch has one, as the last one of "
        "an epoch may: DataLoader(..., drop_last=True), or another batch_size."
    )


def _device_assert(failure: Failure) -> str:
    return (
        "this is most often a label or an index that is out of range: train once with device='cpu',"
        " which names it."
    )


# --- inputs ---------------------------------------------------------------------------------------


def _features(failure: Failure) -> str | None:
    module, given = failure.module, failure.given.get("input")
    if not isinstance(module, nn.Linear) or given is None:
        return None
    wanted, got = module.in_features, given.shape[-1]
    known = f"Linear takes {wanted} features in the last dimension, and got {list(given.shape)}"
    for start in range(1, given.ndim):
        if prod(given.shape[start:]) == wanted:
            flatten = "nn.Flatten()" if start == 1 else f"nn.Flatten({start})"
            return f"{known}: flatten first, with {flatten}."
    if given.ndim > 2:
        return (
            f"{known}: with nn.Flatten() before it, write Linear({prod(given.shape[1:])}, "
            f"{module.out_features}); without, Linear({got}, {module.out_features})."
        )
    return f"{known}: write Linear({got}, {module.out_features}), or change the inputs."


def _input_type(failure: Failure) -> str | None:
    given = failure.given.get("input")
    if given is None:
        return "give the inputs the type of the parameters, such as inputs.float()."
    weight = getattr(failure.module, "weight", None)
    if isinstance(weight, Tensor) and weight.dtype in (torch.float16, torch.bfloat16):
        return (
            "the parameters are of half precision: keep the model in float32, without .half(), and "
            "give precision='bf16' or 'fp16'."
        )
    if given.dtype == torch.uint8:
        return "pictures of bytes have to become numbers with a point: inputs.float() / 255."
    return "write inputs.float() in the data set; what comes from NumPy is float64 by default."


def _channels(failure: Failure) -> str | None:
    wanted, given = failure.number(2), failure.given.get("input")
    if given is None or given.ndim < 3:
        return None
    if given.ndim == 4 and given.shape[-1] == wanted:
        return (
            f"the channels come first, [samples, {wanted}, height, width]: write inputs.permute(0, "
            "3, 1, 2)."
        )
    kind = type(failure.module).__name__
    return f"write {kind}({failure.number(3)}, ...), or give inputs with {wanted} channels."


def _index_out_of_range(failure: Failure) -> str | None:
    given, module = failure.given.get("input"), failure.module
    if given is None or not isinstance(module, nn.Embedding | nn.EmbeddingBag):
        return None
    rows, lowest, highest = module.num_embeddings, int(given.min()), int(given.max())
    if lowest < 0:
        return f"it got {lowest}, and the numbers begin at 0."
    return (
        f"{type(module).__name__} has {rows} rows, for the numbers 0 to {rows - 1}, and got "
        f"{lowest} to {highest}. Give it {highest + 1} rows or more."
    )


def _index_type(failure: Failure) -> str:
    return "an Embedding is asked for rows by whole numbers: write inputs.long()."


def _devices(failure: Failure) -> str:
    return (
        "hookloop moves the model and the tensors of a batch; make your own on run.device, or "
        "keep them in the model with register_buffer()."
    )


def _twice(failure: Failure) -> str:
    return (
        "a step returns its loss and calls no backward(), which the Trainer does. If it does not, "
        "something of an earlier iteration is still in this loss, such as the state of a recurrent "
        "network: keep it with .detach()."
    )


Advise = Callable[[Failure], str | None]

_PATTERNS: Mapping[str, Advise] = {
    r"Target (-?\d+) is out of bounds": _label_out_of_range,
    r"expected target dtype to be Long|expected scalar type Long but found": _label_type,
    r"multi-target not supported": _label_shape,
    r"Expected floating point type for target with class probabilities": _label_shape,
    r"Expected input batch_size \((\d+)\) to match target batch_size \((\d+)\)": _label_count,
    r"For 1D input, 1D target must have size 1, but got target size: (\d+)": _label_count,
    r"Float can't be cast to the desired output type Long": _float_targets,
    r"Found dtype Long but expected Float": _float_targets,
    r"Target size \(.*\) must be the same as input size": _unequal_targets,
    r"Using a target size \(.*is deprecated": _unequal_targets,
    r"The size of tensor a .* must match the size of tensor b": _unequal_targets,
    r"all elements of input should be between 0 and 1": _probabilities,
    r'"\w+" not implemented for \'(?:Long|Int)\'': _swapped,
    r"Expected more than 1 value per channel when training": _single_sample,
    r"device-side assert triggered": _device_assert,
    r"mat1 and mat2 shapes cannot be multiplied|size mismatch, got input": _features,
    r"mat1 and mat2 must have the same dtype": _input_type,
    r"Input type \(.*\) and (?:bias|weight) type \(.*\) should be the same": _input_type,
    r"expected input\[(.*)\] to have (\d+) channels, but got (\d+) channels": _channels,
    r"index out of range in self": _index_out_of_range,
    r"argument #1 'indices' to have one of the following scalar types": _index_type,
    r"Expected all tensors to be on the same device": _devices,
    r"backward through the graph a second time": _twice,
}

_ADVICE = [(re.compile(pattern), advise) for pattern, advise in _PATTERNS.items()]
