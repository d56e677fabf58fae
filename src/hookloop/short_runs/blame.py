"""Which samples of a batch a loss comes from: per sample the loss, that of it alone, the gradient.

All of it is computed beside the iteration, with the batch as the model saw it, and leaves the bits
of the iteration as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import isfinite, sqrt
from statistics import median
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from hookloop.checkpoint.state.modules import keep_buffers, keep_modes, modules_of
from hookloop.data.batch import pair_of, size_of
from hookloop.data.mixing.mixture import Mixture
from hookloop.data.random.states import generators_kept
from hookloop.data.ranks.cut import Cut
from hookloop.engine.hook import Hook, Priority
from hookloop.errors import DataError
from hookloop.metrics.store import MetricStore
from hookloop.update.update import Update

if TYPE_CHECKING:
    from hookloop.engine.run import Run

CLOSE = 1e-3
"""How much the mean over the samples may differ from the loss of the batch, relative to it."""

LONGEST = 400
"""Characters of a text that are kept."""

MOST_INDICES = 4096
"""Batches whose indices are kept: a loader draws some in advance."""


@dataclass(frozen=True)
class SampleBlame:
    """A sample of a batch.

    Attributes:
        iter: The iteration.
        microbatch: The microbatch of the iteration, from 0.
        place: Its place in the microbatch, from 0.
        update: The update, where an iteration has several.
        loss: What it adds to the loss of the batch, as far as that is known.
        alone: Its loss alone, in evaluation mode.
        gradient: The norm of its gradient.
        exact: Whether ``loss`` is its part of the real loss: their mean is that of the batch.
        index: Its index in the data set, if it is known.
        id: What the data set's method ``id(index)`` returns.
        target: Its target, if that is a number.
        text: The text of it, if the batch has one.
        picture: Its image, if the inputs are images.
    """

    iter: int
    microbatch: int
    place: int
    update: str = ""
    loss: float | None = None
    alone: float | None = None
    gradient: float | None = None
    exact: bool = False
    index: object = None
    id: object = None
    target: float | None = None
    text: str | None = None
    picture: Tensor | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Blame:
    """The samples of an iteration, the worst first.

    Attributes:
        iter: The iteration.
        samples: Its samples, ordered by ``by``.
        by: By what: ``alone``, or ``loss`` where a sample alone says nothing.
        typical: The median of each quantity over the batches before.
        before: The iterations before that were looked at.
        why_not: What could not be computed, or is approximate, with the reason.
    """

    iter: int
    samples: Sequence[SampleBlame]
    by: str
    typical: Mapping[str, float]
    before: Sequence[int]
    why_not: Sequence[str]


class LookAtSamples(Hook):
    """Computes, beside some iterations, what each sample of the batch adds to the loss.

    Args:
        first: The first iteration.
        last: The last one.
        gradients: Whether to compute the norm of each sample's gradient, a backward pass for each.
    """

    name = "look_at_samples"
    # Behind all others: the batch is as the model sees it.
    priority = Priority.LOWEST
    draws_random_numbers = False

    def __init__(self, first: int, last: int, *, gradients: bool = True) -> None:
        self.first, self.last = first, last
        self.gradients = gradients
        self.found: list[SampleBlame] = []
        self.why_not: list[str] = []
        self._updates: list[Update] = []
        self._current = 0
        self._counts: dict[int, int] = {}
        self._alone: list[float | None] = []
        self._alone_gradients: list[float | None] = []
        self._whole: float | None = None

    def change_update(self, run: Run, update: Any) -> Any:  # noqa: ANN401 - of a higher room
        """Note which update is computed, and look at the samples of a step before it is made."""
        number = len(self._updates)
        self._updates.append(update)

        def around(compute: Callable[[Run], Any]) -> Callable[[Run], Any]:
            def noting(run: Run) -> object:
                self._current = number
                if update.returns_loss and self._is_wanted(run):
                    self._look_alone(run, update)
                return compute(run)

            return noting

        return update.computing_by(around)

    def before_train(self, run: Run) -> None:
        """Let the readers keep which samples they read."""
        for stream in run.train_data.parts() if run.train_data is not None else ():
            stream.note_indices(MOST_INDICES)

    def before_train_iter(self, run: Run) -> None:
        """Count the microbatches of an iteration."""
        self._counts = {}

    def before_forward(self, run: Run) -> None:
        """Look at each sample alone, before anything of the iteration is computed."""
        update = self._updates[0]
        if not update.returns_loss and self._is_wanted(run):
            self._look_alone(run, update)

    def after_loss(self, run: Run) -> None:
        """Look at the rows of the real output."""
        if not self._is_wanted(run):
            return
        update = self._updates[self._current]
        count, microbatch = size_of(run.batch), self._counts.get(self._current, 0)
        self._counts[self._current] = microbatch + 1
        rows: list[Tensor | None] = [None] * count
        values: list[float | None] = [None] * count
        exact = False
        if not update.returns_loss and update.loss_of is not None:
            rows, values, exact = self._look_at_rows(run, update, count)
        elif self._whole is not None:
            values = self._alone
            self._tell(
                "the loss is returned by the model or a step, so that its rows are not known: the "
                "loss of a sample is computed in evaluation mode, which is approximate"
            )
        gradients = self._alone_gradients
        if exact and self.gradients:
            gradients = [self._norm(update, row) for row in rows]
        name = update.loss_name if len(self._updates) > 1 else ""
        about = list(_about(run, count))
        for place in range(count):
            self.found.append(
                replace(
                    about[place],
                    iter=run.progress.iter + 1,
                    microbatch=microbatch,
                    update=name,
                    loss=values[place],
                    alone=self._alone[place] if place < len(self._alone) else None,
                    gradient=gradients[place] if place < len(gradients) else None,
                    exact=exact,
                )
            )

    def after_train_iter(self, run: Run) -> None:
        """Name the samples of the iteration that is done."""
        now = run.progress.iter
        if self.first <= now <= self.last:
            self._name(run, now)

    def _is_wanted(self, run: Run) -> bool:
        return run.phase == "train" and self.first <= run.progress.iter + 1 <= self.last

    def _tell(self, reason: str) -> None:
        if reason not in self.why_not:
            self.why_not.append(reason)

    # --- each sample alone ------------------------------------------------------------------------

    def _look_alone(self, run: Run, update: Update) -> None:
        count = size_of(run.batch)
        self._alone, self._alone_gradients, self._whole = [None] * count, [], None
        if run._internals.shards is not None:
            self._tell("the model is sharded: no rank can compute a sample alone")
            return
        # A loss that no rows are known of has no other gradient.
        wants_gradients = self.gradients and update.returns_loss
        whole, batch = run.batch, run.batch
        with self._without_trace(run):
            try:
                parts = [Cut(place, count).batch(batch) for place in range(count)]
            except DataError as error:
                self._tell(f"the batch cannot be cut into samples: {error}")
                return
            for place, part in enumerate(parts):
                loss = self._compute(run, update, part, needs_graph=wants_gradients)
                self._alone[place] = _number(loss)
                if wants_gradients:
                    self._alone_gradients.append(self._norm(update, loss))
            if not update.returns_loss:
                return
            self._whole = _number(self._compute(run, update, whole))
            known = [one for one in self._alone if one is not None]
            if self._whole is None or len(known) < count or _is_mean(self._whole, known):
                return
            # Not a mean over samples: what is missing without each of them.
            others = [_number(self._compute(run, update, _without(batch, n))) for n in range(count)]
            self._alone = [
                None if one is None else count * self._whole - (count - 1) * one for one in others
            ]
            self._alone_gradients = []
            self._tell(
                "the loss of the batch is not the mean over its samples: the loss of a sample is "
                "what is missing in that of the batch without it"
            )

    def _compute(
        self, run: Run, update: Update, batch: object, *, needs_graph: bool = False
    ) -> Tensor | None:
        run.batch = batch
        try:
            with torch.set_grad_enabled(needs_graph), generators_kept():
                run.output = update.forward(run)
                return update.loss_of(run) if update.loss_of is not None else None
        except Exception as error:  # noqa: BLE001 - a user's code, which may need a whole batch
            self._tell(
                f"a sample cannot be computed alone: {type(error).__name__}: "
                f"{str(error).partition(chr(10))[0]}"
            )
            return None

    @contextmanager
    def _without_trace(self, run: Run) -> Iterator[None]:
        modules = modules_of(
            run.model, run._internals.loss_function, *run._internals.undeclared.modules()
        )
        kept = [
            keep_buffers(modules),
            keep_modes(modules),
            run._internals.undeclared.keep_from_evaluation(removes_new=True),
        ]
        current = {name: getattr(run, name) for name in ("batch", "output", "loss", "metrics")}
        run.metrics = MetricStore()
        for module in modules:
            module.training = False
        try:
            with generators_kept():
                yield
        finally:
            for put_back in kept:
                put_back()
            for name, value in current.items():
                setattr(run, name, value)

    # --- rows of the real output ------------------------------------------------------------------

    def _look_at_rows(
        self, run: Run, update: Update, count: int
    ) -> tuple[list[Tensor | None], list[float | None], bool]:
        pair, loss_of = pair_of(run.batch), update.loss_of
        if pair is None or loss_of is None or run.loss is None:
            return [None] * count, [None] * count, False
        both = {"output": run.output, "target": pair[1]}
        current = {name: getattr(run, name) for name in ("batch", "output", "loss")}

        def loss_with(part: Mapping[str, object]) -> Tensor | None:
            run.batch, run.output = (None, part["target"]), part["output"]
            try:
                return loss_of(run)
            except Exception as error:  # noqa: BLE001 - a loss may need a whole batch
                self._tell(
                    f"the loss cannot be computed for a sample: {type(error).__name__}: "
                    f"{str(error).partition(chr(10))[0]}"
                )
                return None

        try:
            with generators_kept():
                whole = _number(run.loss)
                cuts = [
                    cast("Mapping[str, object]", Cut(n, count).batch(both)) for n in range(count)
                ]
                rows = [loss_with(part) for part in cuts]
                values = [_number(row) for row in rows]
                if whole is not None and _adds_up(run, update, cuts, values, whole):
                    return rows, values, True
                if whole is None:
                    return rows, values, False
                others = [
                    _number(loss_with(cast("Mapping[str, object]", _without(both, n))))
                    for n in range(count)
                ]
        except DataError as error:
            self._tell(f"the output cannot be cut into samples: {error}")
            return [None] * count, [None] * count, False
        finally:
            for name, value in current.items():
                setattr(run, name, value)
        self._tell(
            "the loss is no function of rows: the loss of a sample is what is missing in that of "
            "the batch without it, which is approximate"
        )
        left = [None if one is None else count * whole - (count - 1) * one for one in others]
        return rows, left, False

    def _norm(self, update: Update, loss: Tensor | None) -> float | None:
        """Return the norm of a gradient; those of the iteration are not touched."""
        trained = [one for one in dict.fromkeys(update.parameters()) if one.requires_grad]
        if loss is None or not loss.requires_grad or not trained:
            return None
        found = torch.autograd.grad(loss, trained, retain_graph=True, allow_unused=True)
        squares = (float(one.detach().float().pow(2).sum()) for one in found if _is_there(one))
        return sqrt(sum(squares))

    # --- names ------------------------------------------------------------------------------------

    def _name(self, run: Run, now: int) -> None:
        """Add the indices of the samples, and what the data set calls them."""
        data = run.train_data
        own = [one for one in self.found if one.iter == now]
        count = max((one.microbatch for one in own), default=-1) + 1
        if data is None or isinstance(data, Mixture) or not count:
            return
        groups = data.noted_indices(count)
        if groups is None:
            return
        id_of = getattr(getattr(data.data, "dataset", None), "id", None)
        for number, one in enumerate(self.found):
            if one.iter != now:
                continue
            group = groups[one.microbatch]
            if not isinstance(group, Sequence) or one.place >= len(group):
                continue
            index = group[one.place]
            index = index.item() if isinstance(index, Tensor) else index
            named = id_of(index) if callable(id_of) else None
            self.found[number] = replace(one, index=index, id=named)

    def blame(self) -> Blame:
        """Return what was found, the worst first."""
        own = [one for one in self.found if one.iter == self.last]
        if not own and any(type(one).make is not Update.make for one in self._updates):
            self._tell("step= makes its updates itself, so that nothing shows what it computes")
        earlier = [one for one in self.found if one.iter < self.last]
        by = "alone"
        is_known = all(one.alone is not None for one in own)
        # Where the loss compares samples with each other, one alone says nothing.
        if not is_known or not all(one.exact or one.loss == one.alone for one in own):
            by = "loss"
        quantities = ("loss", "alone", "gradient")
        typical = {
            name: median(values)
            for name in quantities
            if (values := [v for one in earlier if (v := getattr(one, name)) is not None])
        }
        ordered = sorted(own, key=lambda one: _order(getattr(one, by)), reverse=True)
        before = sorted({one.iter for one in earlier})
        return Blame(self.last, ordered, by, typical, before, tuple(self.why_not))


def _is_there(gradient: Tensor | None) -> bool:
    return gradient is not None  # torch's types say that it always is.


def _order(value: float | None) -> float:
    if value is None:
        return -float("inf")
    return value if isfinite(value) else float("inf")


def _number(value: Tensor | None) -> float | None:
    return None if value is None or value.numel() != 1 else float(value.detach())


def _is_mean(whole: float, values: Sequence[float]) -> bool:
    return _is_close(sum(values) / len(values), whole)


def _adds_up(
    run: Run,
    update: Update,
    cuts: Sequence[Mapping[str, object]],
    values: Sequence[float | None],
    whole: float,
) -> bool:
    """Return whether the loss of the batch is the mean, or the sum, of those of its samples."""
    weights = [1.0] * len(cuts)
    if update.counts is not None:
        found = [update.counts(run, part["target"]) for part in cuts]
        weights = [1.0 if one is None else float(one) for one in found]
    # Of a sample that does not count, such as one without a label, the loss may be NaN.
    pairs = [(v, w) for v, w in zip(values, weights, strict=True) if w and v is not None]
    if None in values or not pairs:
        return False
    total = 1.0 if update.sums else sum(weight for _, weight in pairs)
    return _is_close(sum(value * weight for value, weight in pairs) / total, whole)


def _is_close(one: float, other: float) -> bool:
    return abs(one - other) <= CLOSE * max(abs(one), abs(other)) + 1e-6


def _without(batch: object, place: int) -> object:
    """Return a batch without one of its samples."""
    count = size_of(batch) if not isinstance(batch, Mapping) else _rows(batch)
    kept = torch.tensor([n for n in range(count) if n != place])

    def take(value: object) -> object:
        if isinstance(value, Tensor):
            return value[kept.to(value.device)] if value.ndim and len(value) == count else value
        if isinstance(value, Mapping):
            return {key: take(one) for key, one in value.items()}
        if isinstance(value, tuple | list):
            if len(value) == count and not any(isinstance(one, Tensor | Mapping) for one in value):
                return type(value)(value[n] for n in kept.tolist())
            return type(value)(take(one) for one in value)
        return value

    return take(batch)


def _rows(batch: Mapping[Any, object]) -> int:
    return next((len(one) for one in batch.values() if isinstance(one, Tensor) and one.ndim), 0)


def _about(run: Run, count: int) -> Iterator[SampleBlame]:
    """Yield what the batch says about each sample: its target, its text, its image."""
    pair = pair_of(run.batch)
    inputs, targets = pair if pair is not None else (run.batch, None)
    images = inputs if isinstance(inputs, Tensor) and len(inputs) == count else None
    is_image = images is not None and (
        images.ndim == 4 and images.shape[1] in (1, 3, 4) and images.is_floating_point()
    )
    texts = _texts(run.batch, count)
    for place in range(count):
        target = None
        if isinstance(targets, Tensor) and targets.ndim and targets[place].numel() == 1:
            target = float(targets[place])
        picture = images[place].detach().cpu().clone() if images is not None and is_image else None
        text = texts[place][:LONGEST] if texts is not None else None
        yield SampleBlame(0, 0, place, target=target, text=text, picture=picture)


def _texts(value: object, count: int) -> Sequence[str] | None:
    if isinstance(value, tuple | list):
        if len(value) == count and all(isinstance(one, str) for one in value):
            return cast("Sequence[str]", value)
        parts: Sequence[object] = value
    else:
        parts = list(value.values()) if isinstance(value, Mapping) else []
    return next((found for one in parts if (found := _texts(one, count)) is not None), None)
