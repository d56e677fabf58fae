"""What is looked at while the first loss or metric of a training is computed, and never again.

A loss that is computed in the wrong way is a number like any other, and the training goes on with
it. What torch is asked to do tells more: the calls of the first iteration are watched for those
that are mistakes almost always. Later iterations do without any of this.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import CellType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from hookloop.errors import LossWarning, ModelError
from hookloop.metrics.meters import Accumulating, Metric, MetricFunction
from hookloop.metrics.series import Value
from hookloop.update.loss_weights import IGNORED, why_uncounted
from hookloop.update.update import Update

if TYPE_CHECKING:
    from hookloop.engine.run import Run

_log = logging.getLogger("hookloop")

_TORCH = f"{Path(torch.__file__).parent}/"
_OURS = f"{Path(__file__).parent.parent}/"

_ELEMENTWISE = (
    functional.mse_loss,
    functional.l1_loss,
    functional.smooth_l1_loss,
    functional.huber_loss,
    functional.poisson_nll_loss,
    functional.soft_margin_loss,
    functional.kl_div,
)
"""Losses that compare each output with its own target, and broadcast the two if they can."""

_DIFFERENCES = (torch.sub, torch.subtract, Tensor.sub, Tensor.__sub__, Tensor.__rsub__)

_COMPARISONS = (
    *(getattr(torch, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")),
    *(getattr(Tensor, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")),
    *(getattr(Tensor, f"__{name}__") for name in ("eq", "ne", "lt", "le", "gt", "ge")),
)

_VIEWS = ("Squeeze", "Unsqueeze", "View", "UnsafeView", "Reshape", "Select", "Slice", "Alias")
"""How the names of gradients begin that only look at numbers in another shape."""

_TO_FAIL = "To fail instead: warnings.simplefilter('error', hookloop.LossWarning)."

_OF_COMMANDS = ("/contextlib.py", "/click/core.py")
"""Files between the line that starts a training and ours."""

MOST_OBJECTS = 1000
"""How many objects are followed to find what a step may use."""

_OF_TORCH = "Using a target size"
"""How torch's own warning about the same mistake begins."""


class Place(NamedTuple):
    """A line of the user's."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


def watched(run: Run, update: Update) -> Update | None:
    """Return an update like one that computes its first loss; None if that is not looked at.

    It is a copy: nothing of the other one changes. An `Update` of the user's own may keep state,
    and what is compiled would be compiled again for the second iteration. A training that is
    continued was looked at when it began; it computes as one that was never cut off. torch's own
    attention has a faster path in evaluation mode, with other roundings, which it leaves while
    something looks at its calls: a step that may use it, for a teacher, is not looked at.
    """
    if run.progress.iter or type(update) is not Update or _is_compiled(run):
        return None
    computes = (
        [run._internals.step_function, run.model]
        if update.returns_loss
        else [run._internals.loss_function]
    )
    if any(_has_fast_path(one) for one in reachable(computes)):
        return None
    is_split = run.accumulate > 1 or run.world.cuts_batches
    calls = LossCalls(
        is_main=run.world.is_main,
        by_samples=update.counts is not None and run.world.cuts_batches,
        is_uncounted=is_split and _is_uncounted(update, run),
    )

    def around(compute: Callable[[Run], Any]) -> Callable[[Run], Any]:
        def compute_watched(run: Run) -> object:
            calls.backwards.clear()
            with calls:
                found = compute(run)
            _reject_own_backward(calls, found)
            return found

        return compute_watched

    return update.computing_by(around)


def watching_first_calls(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """Return metrics of which each function is watched for a broadcast in its first call.

    In its place, the mapping then has the function itself.
    """
    found = dict(metrics)
    for name, metric in metrics.items():
        is_function = isinstance(metric, FunctionType) or (
            isinstance(metric, nn.Module) and metric._compiled_call_impl is None
        )
        if not is_function or isinstance(metric, Accumulating):
            continue
        if hasattr(metric, "_torchdynamo_orig_callable"):
            continue
        if not any(_has_fast_path(one) for one in reachable([metric])):
            found[name] = partial(_call_first, found, name, metric)
    return found


def _call_first(
    metrics: dict[str, Metric], name: str, metric: MetricFunction, output: object, targets: object
) -> Value:
    metrics[name] = metric
    calls = MetricCalls(name)
    with calls if isinstance(output, Tensor) and isinstance(targets, Tensor) else nullcontext():
        value = metric(output, targets)
    calls.check_value(value)
    return value


def _is_compiled(run: Run) -> bool:
    given = (run._internals.loss_function, *_steps_of(run._internals.step_function))
    modules = (
        one for root in (run.model, *given) if isinstance(root, nn.Module) for one in root.modules()
    )
    return any(hasattr(one, "_torchdynamo_orig_callable") for one in given) or any(
        one._compiled_call_impl is not None or type(one).__name__ == "OptimizedModule"
        for one in modules
    )


def _has_fast_path(one: object) -> bool:
    kinds = (nn.MultiheadAttention, nn.TransformerEncoderLayer)
    return isinstance(one, nn.Module) and any(isinstance(part, kinds) for part in one.modules())


def reachable(roots: Sequence[object]) -> Iterator[object]:
    """Yield what functions and objects refer to: closures, globals that they name, attributes."""
    seen: set[int] = set()
    waiting = deque(roots)
    while waiting and len(seen) < MOST_OBJECTS:
        one = waiting.popleft()
        if id(one) in seen or isinstance(one, ModuleType | type | Tensor | str | int | float):
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, FunctionType):
            waiting += [cell.cell_contents for cell in one.__closure__ or () if _is_set(cell)]
            waiting += [one.__globals__.get(name) for name in _names_in(one.__code__)]
        elif isinstance(one, MethodType):
            waiting += [one.__func__, one.__self__]
        elif isinstance(one, partial):
            waiting += [one.func, *one.args, *one.keywords.values()]
        elif type(one) is dict:  # A mapping of the user's own may read data.
            waiting += one.values()
        elif type(one) in (list, tuple):
            waiting += cast("Sequence[object]", one)
        elif not isinstance(one, nn.Module) and type(one).__dictoffset__:
            # Past a `__getattr__` of the user's.
            waiting += object.__getattribute__(one, "__dict__").values()


def _is_set(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # Of a name that is assigned later.
        return False


def _names_in(code: CodeType) -> list[str]:
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    return [*code.co_names, *(name for one in inner for name in _names_in(one))]


def _steps_of(step: object) -> tuple[object, ...]:
    return tuple(step.values()) if isinstance(step, Mapping) else (step,)


def _is_uncounted(update: Update, run: Run) -> bool:
    """Return whether nothing is known of what a loss is a mean of, and nothing was said of that."""
    is_known = update.returns_loss or update.sums or update.counts is not None
    return not is_known and why_uncounted(run._internals.loss_function) is None


class LossCalls(TorchFunctionMode):
    """Looks at the calls to torch while a loss is computed, and warns of those that are mistakes.

    Args:
        is_main: Whether this rank is the one that warns.
        by_samples: Whether a label that is ignored counts as a sample all the same.
        is_uncounted: Whether it matters what the loss is a mean of, and that is not known.
    """

    def __init__(
        self, *, is_main: bool = True, by_samples: bool = False, is_uncounted: bool = False
    ) -> None:
        super().__init__()
        self._by_samples, self._is_uncounted = by_samples, is_uncounted
        self.backwards: list[tuple[object, Place | None]] = []
        self._is_main = is_main
        self._warned: set[str] = set()

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        given = dict(kwargs or {})
        if func is Tensor.backward:
            self.backwards.append((args[0], _users_line()))
        if func not in _ELEMENTWISE:
            found = func(*args, **given)
        else:
            with warnings.catch_warnings():  # torch's own would point here, not to the user's line.
                warnings.filterwarnings("ignore", message=_OF_TORCH)
                found = func(*args, **given)
        self._check(func, args, given)  # Afterwards: what torch rejects needs no warning.
        return found

    def _check(
        self, func: Callable[..., Any], args: tuple[Any, ...], given: Mapping[str, Any]
    ) -> None:
        if func in _ELEMENTWISE:
            self._check_shapes(func.__name__, args, given)
            if func is functional.kl_div:
                self._check_kl(args, given)
        elif func in _DIFFERENCES:
            self._check_difference(args)
        elif func is functional.cross_entropy:
            self._check_cross_entropy(args, given)
        elif func is functional.nll_loss:
            self._check_nll(args, given)
        elif func is functional.binary_cross_entropy_with_logits:
            self._check_logits(args, given)

    def _check_shapes(self, name: str, args: tuple[Any, ...], given: Mapping[str, Any]) -> None:
        output, target = _pair(args, given)
        if output is None or target is None or output.shape == target.shape:
            return
        shape = torch.broadcast_shapes(output.shape, target.shape)  # type: ignore[no-untyped-call]
        if output.numel() != 1 and target.numel() != 1 and shape.numel() > 1:
            text = _describe_broadcast(name, output, target, shape)
            if _users_line() is None and "outputs.squeeze" in text:  # It is given as loss=.
                text += f" For example, loss=lambda outputs, targets: {name}(outputs.squeeze(-1), "
                text += "targets)."
            self._warn("broadcast", text)

    def _check_difference(self, args: tuple[Any, ...]) -> None:
        """Find ``output - targets`` of the shapes (8, 1) and (8,), in a loss that is hand-written.

        Other differences of unequal shapes are common: of these, one was computed by the model.
        """
        if len(args) < 2 or not all(isinstance(one, Tensor) for one in args[:2]):
            return
        output, target = args[:2] if args[0].requires_grad else (args[1], args[0])
        is_column = {output.ndim, target.ndim} == {1, 2} and output.numel() == target.numel() > 1
        column = output if output.ndim == 2 else target
        # What the model has learned, such as centers that all samples are compared with, is a leaf.
        is_output = output.requires_grad > target.requires_grad and not output.is_leaf
        if is_column and column.shape[1] == 1 and is_output:
            shape = torch.broadcast_shapes(output.shape, target.shape)  # type: ignore[no-untyped-call]
            self._warn("broadcast", _describe_broadcast("a difference", output, target, shape))

    def _check_cross_entropy(self, args: tuple[Any, ...], given: Mapping[str, Any]) -> None:
        output, target = _pair(args, given)
        if output is None or target is None or not output.is_floating_point() or not output.ndim:
            return
        classes = 1 if output.ndim > 1 else 0
        if output.shape[classes] == 1 and output.numel() > 1:
            self._warn(
                "softmax",
                f"cross_entropy gets an output of shape {list(output.shape)}, which is a single "
                "class: the loss is always 0. Let the model return a number for each class, or "
                "use BCEWithLogitsLoss, which takes one number for two classes.",
            )
        elif output.numel() and _sums_to_one(output, classes):
            self._warn(
                "softmax",
                "cross_entropy gets outputs that are probabilities already: they are not negative "
                "and sum to 1. It applies softmax itself, and a second one makes the training slow "
                "and the loss never small. Remove the softmax at the end of the model.",
            )
        elif _made_by(output).startswith("Sigmoid"):
            self._warn(
                "softmax",
                "cross_entropy gets the output of a sigmoid and applies softmax to it, so that "
                "the loss is never small. Remove the sigmoid at the end of the model; for several "
                "labels per sample, use BCEWithLogitsLoss.",
            )

        ignored = given.get("ignore_index", IGNORED)
        if self._is_uncounted and (ignored != IGNORED or given.get("weight") is not None):
            self._warn(
                "counted",
                "cross_entropy leaves out or weights targets within loss=, where that cannot be "
                "seen before it is called: batches are weighted by their samples, so that the mean "
                "over several of them is not exact. Give CrossEntropyLoss(...) with its arguments.",
            )
        is_left_out = self._by_samples and target.ndim <= 1 and ignored == IGNORED
        if is_left_out and bool((target == IGNORED).any()):
            self._warn(
                "counted",
                f"some labels are {IGNORED}, which cross_entropy leaves out, and the ranks are "
                "weighted by their samples all the same. Use another number for them, and give "
                "CrossEntropyLoss(ignore_index=...), which is then counted.",
            )

    def _check_nll(self, args: tuple[Any, ...], given: Mapping[str, Any]) -> None:
        output, target = _pair(args, given)
        if output is not None and target is not None and bool((output.detach() > 0).any()):
            self._warn(
                "softmax",
                "nll_loss gets outputs above 0, which are no logarithms of probabilities: the loss "
                "falls without a limit. Use CrossEntropyLoss, or end the model with LogSoftmax.",
            )

    def _check_kl(self, args: tuple[Any, ...], given: Mapping[str, Any]) -> None:
        output, target = _pair(args, given)
        # By rounding, the logarithm of a probability of 1 may be just above 0.
        if output is not None and target is not None and bool((output.detach() > 1e-3).any()):
            self._warn(
                "softmax",
                "kl_div gets outputs above 0, which are no logarithms of probabilities: it "
                "compares log_softmax(outputs) with the probabilities of the targets, in this "
                "order.",
            )

    def _check_logits(self, args: tuple[Any, ...], given: Mapping[str, Any]) -> None:
        output, _ = _pair(args, given)
        # By what computed it, since the outputs of a new model may well be between 0 and 1.
        if output is not None and _made_by(output).startswith("Sigmoid"):
            self._warn(
                "softmax",
                "binary_cross_entropy_with_logits gets the output of a sigmoid, and applies "
                "another one itself. Remove the sigmoid at the end of the model, or use BCELoss.",
            )

    def _warn(self, kind: str, text: str) -> None:
        if kind in self._warned or not self._is_main:
            return
        self._warned.add(kind)
        place, message = _users_line() or _line_of_start(), f"{text} {_TO_FAIL}"
        if place is not None:
            warnings.warn_explicit(message, LossWarning, place.file, place.line)
            return
        # A config has no line that calls anything: what the filters let pass goes to the log.
        with warnings.catch_warnings(record=True) as caught:
            warnings.warn_explicit(message, LossWarning, "", 0)
        if caught:
            _log.warning("%s", message)


class MetricCalls(LossCalls):
    """Looks at the calls to torch while a metric is computed from one batch.

    Args:
        name: The name of the metric.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def _check(
        self, func: Callable[..., Any], args: tuple[Any, ...], given: Mapping[str, Any]
    ) -> None:
        if func not in (*_ELEMENTWISE, *_DIFFERENCES, *_COMPARISONS):
            return
        one, other = _pair(args, given)
        if one is None or other is None or {one.ndim, other.ndim} != {1, 2}:
            return
        column = one if one.ndim == 2 else other
        if one.numel() == other.numel() > 1 and column.shape[1] == 1:
            shape = torch.broadcast_shapes(one.shape, other.shape)  # type: ignore[no-untyped-call]
            text = _describe_broadcast(f"The metric '{self._name}'", one, other, shape)
            self._warn("broadcast", text)

    def check_value(self, value: object) -> None:
        """Find a count, which is averaged over the samples as any other number is."""
        is_whole = isinstance(value, int) or (
            isinstance(value, Tensor)
            and value.numel() == 1
            and not (value.is_floating_point() or value.is_complex())
        )
        if is_whole and int(cast("int", value)) > 1:
            self._warn(
                "count",
                f"The metric '{self._name}' returned a whole number, {int(cast('int', value))}. "
                "What a function returns for each batch is averaged over the samples, so that a "
                "count depends on the size of the batches. Return a share, as with .float().mean()"
                ", or give an object with update, compute and reset.",
            )


def _pair(args: tuple[Any, ...], given: Mapping[str, Any]) -> tuple[Tensor | None, Tensor | None]:
    output = args[0] if args else given.get("input")
    target = args[1] if len(args) > 1 else given.get("target")
    return (
        output if isinstance(output, Tensor) else None,
        target if isinstance(target, Tensor) else None,
    )


def _describe_broadcast(name: str, output: Tensor, target: Tensor, shape: torch.Size) -> str:
    ours, theirs = list(output.shape), list(target.shape)
    fix = "Give both the same shape."
    if output.numel() == target.numel():
        longer, what = (output, "outputs") if output.ndim > target.ndim else (target, "targets")
        if longer.shape[-1] == 1:
            fix = f"Write {what}.squeeze(-1), or give both the same shape in another way."
    return (
        f"{name} of outputs {ours} and targets {theirs} compares each output with the targets of "
        f"other samples: the two are broadcast to {list(shape)}, {shape.numel()} pairs in all. "
        f"{fix}"
    )


def _made_by(output: Tensor) -> str:
    """Return the name of the gradient of what computed a tensor, whatever its shape was then."""
    node = output.grad_fn
    while node is not None and node.name().startswith(_VIEWS):
        node = node.next_functions[0][0]
    return "" if node is None else node.name()


def _sums_to_one(output: Tensor, dim: int) -> bool:
    """Return whether outputs are probabilities; this waits for the device."""
    values = output.detach().movedim(dim, -1).reshape(-1, output.shape[dim]).float()
    apart = (values.sum(-1) - 1).abs().amax()
    if not bool((apart < 0.01) & (values.amin() >= 0)):
        return False
    # A head whose weights begin at 0 gives its bias to every sample, whatever it sums to.
    return _made_by(output).startswith("Softmax") or bool((values != values[0]).any())


def _reject_own_backward(calls: LossCalls, found: object) -> None:
    """Reject a step that calls backward itself on what it returns, or on what that is a copy of."""
    if not calls.backwards:
        return
    loss = found.get("loss") if isinstance(found, Mapping) else found
    returned, place = next(
        ((one, place) for one, place in calls.backwards if one is loss), calls.backwards[-1]
    )
    needs_gradient = isinstance(loss, Tensor) and loss.requires_grad
    # A step may call backward for another purpose, and return a loss that it was not called on.
    if returned is loss or not needs_gradient:
        where = f" ({place})" if place is not None else ""
        raise ModelError(
            f"The step calls backward() itself{where}: return the loss, and leave zero_grad(), "
            "backward() and the optimizer's step() to the Trainer, which calls them. To make the "
            "updates yourself, use trainer.loop().",
            argument="step",
        )


# --- where in the user's code ---------------------------------------------------------------------


def _users_line() -> Place | None:
    """Return the line that called torch, if it is neither torch's nor ours."""
    frame = _skip(sys._getframe(1), (__file__, _TORCH))
    return None if frame is None or _is_in(frame, _OURS) else _place(frame)


def _line_of_start() -> Place | None:
    """Return the line that started the training; None for the command."""
    frame = _skip(sys._getframe(1), (_TORCH, _OURS))
    return None if frame is None else _place(frame)


def _skip(frame: FrameType | None, folders: tuple[str, ...]) -> FrameType | None:
    while frame is not None and (
        any(_is_in(frame, folder) for folder in folders)
        or frame.f_code.co_filename.startswith("<frozen")
        or frame.f_code.co_filename.endswith(_OF_COMMANDS)
    ):
        frame = frame.f_back
    return frame


def _is_in(frame: FrameType, folder: str) -> bool:
    return frame.f_code.co_filename.startswith(folder)


def _place(frame: FrameType) -> Place:
    return Place(frame.f_code.co_filename, frame.f_lineno)
