"""A tiny run, a recording hook, and checks of what every hook owes to a run."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

from hookloop.checkpoint.state.compare import Difference, compare
from hookloop.engine.hook import Hook, acts_at
from hookloop.engine.points import POINTS, PointTable
from hookloop.engine.run import Run
from hookloop.trainer.settings import gathered, spread
from hookloop.trainer.state.run_state import RunState
from hookloop.trainer.trainer import Trainer

ITERS_PER_EPOCH = 3


class RecordCalls(Hook):
    """Record every mount point that is fired, in order.

    Args:
        note: What to remember of the run at each call, besides the point's name.

    Attributes:
        calls: The points' names; with ``note``, pairs of the name and what it returned.

    >>> recorder = RecordCalls(lambda run: run.progress.iter)
    >>> _ = tiny_trainer(recorder, max_epochs=1).train()
    >>> [call for call in recorder.calls if call[0] == "after_train_iter"]
    [('after_train_iter', 1), ('after_train_iter', 2), ('after_train_iter', 3)]
    """

    def __init__(self, note: Callable[[Run], object] | None = None) -> None:
        self.note = note
        self.calls: list[Any] = []

    @property
    def points(self) -> list[str]:
        """The points' names alone."""
        return [call if isinstance(call, str) else call[0] for call in self.calls]

    def _record(self, point: str, run: Run) -> None:
        self.calls.append(point if self.note is None else (point, self.note(run)))


# A function, because methods made in the loop itself would all see its last point.
def _recording(point: str) -> Callable[..., None]:
    def method(self: RecordCalls, run: Run, *_: object) -> None:
        self._record(point, run)

    return method


# From the table, so that a new mount point is recorded without a change here.
for _point in POINTS:
    setattr(RecordCalls, _point.name, _recording(_point.name))


def tiny_trainer(*hooks: Hook, **options: Any) -> Trainer:  # noqa: ANN401 - as Trainer takes them
    """Return a Trainer for two epochs of three iterations, with validation and test data.

    The model is a classifier with dropout and momentum, so that a lost random number or a lost
    optimizer state shows. There are no default hooks unless they are asked for.

    Args:
        hooks: The hooks that take part.
        options: Arguments of `hookloop.Trainer`, which replace those chosen here.

    >>> tiny_trainer(max_epochs=3).train().status
    'completed'
    """
    # `seed` seeds only when training starts. The weights are drawn here, and two trainers that are
    # compared have to begin with the same ones.
    torch.manual_seed(0)
    model = options.pop("model", None) or torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Dropout(0.2), torch.nn.Linear(8, 3)
    )
    parts: dict[str, Any] = {
        "train_data": _tiny_data(shuffle=True),
        "val_data": _tiny_data(),
        "data": {"test": _tiny_data()},
        "loss": torch.nn.functional.cross_entropy,
        "metrics": {"accuracy": _accuracy},
        "max_epochs": 2,
        "default_hooks": False,
        "seed": 3,
    }
    # Built only if needed, because it belongs to the model, which may be the caller's.
    if "optimizer" not in options:
        parts["optimizer"] = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    if "step" in options:
        del parts["loss"]  # A Trainer rejects both together.
    return Trainer(model, hooks=hooks, **gathered(spread(parts) | spread(options)))


def assert_hook_contract(
    make_hook: Callable[[], Hook],
    *,
    changes_training: bool | None = None,
    clocks: Collection[str] = (),
    make_trainer: Callable[..., Trainer] = tiny_trainer,
) -> None:
    """Check what every hook owes to any run.

    It acts at mount points that exist, trains and tests without an error, lets the run's own error
    through, keeps its state in plain values that survive a file, continues exactly after a cut, and
    unless told otherwise leaves the training as it is.

    Args:
        make_hook: The hook's class, or a function that makes one; it is called several times.
        changes_training: Whether it is the hook's business to change what is trained; by default
            what the hook itself declares as ``takes_part_in_training``.
        clocks: Entries of its state that count time, and so differ from run to run.
        make_trainer: Called with hooks and with arguments of `hookloop.Trainer`; the training has
            to have at least four iterations.

    >>> from hookloop.hooks import StopOnPlateau
    >>> assert_hook_contract(lambda: StopOnPlateau("val/loss"))
    """
    hook = make_hook()
    name = type(hook).__name__
    # A project may have mount points of its own, and a hook may act at those alone.
    assert acts_at(hook, PointTable(_points_of(make_trainer))), (
        f"{name} acts at no mount point: give it a method that is named after one."
    )
    with TemporaryDirectory(prefix="hookloop-test-") as folder:
        trainer = make_trainer(hook, run_dir=Path(folder) / "run")
        status = trainer.train().status
        assert status in ("completed", "stopped"), f"the run with {name} ended as {status}."
        if trainer.run._internals.test_data:
            trainer.test()
        # Into a new hook, as in a resume, where a new process builds the hook again.
        _check_state(hook, make_hook(), clocks)
        _check_failure(make_hook(), make_trainer, Path(folder) / "failing")
    if not (hook.takes_part_in_training if changes_training is None else changes_training):
        assert_only_observes(make_hook, make_trainer=make_trainer)
    assert_resumes_exactly(
        # One cut in each epoch: after the second, the hook has seen the end of an epoch.
        lambda **options: make_trainer(make_hook(), **options),
        ignore=clocks,
        stop_at=(1, 4),
    )


def assert_only_observes(
    make_hook: Callable[[], Hook], *, make_trainer: Callable[..., Trainer] = tiny_trainer
) -> None:
    """Check that a training ends with the same bits with a hook and without it."""
    with TemporaryDirectory(prefix="hookloop-test-") as folder:
        plain = make_trainer(run_dir=Path(folder) / "without")
        plain.train()
        observed = make_trainer(hook := make_hook(), run_dir=Path(folder) / "with")
        observed.train()
    # Before the weights: they differ as well if the hook stops the run, which would not explain
    # why.
    iters = [trainer.run.progress.iter for trainer in (plain, observed)]
    assert iters[0] == iters[1], (
        f"{type(hook).__name__} ended the training after {iters[1]} of {iters[0]} iterations."
    )
    differences = compare(
        {"model": plain.run.model.state_dict()}, {"model": observed.run.model.state_dict()}
    )
    assert not differences, (
        f"{type(hook).__name__} changes the training: {_listed(differences)}. A hook that only "
        "observes works on copies; one that is meant to declares takes_part_in_training = True."
    )


def assert_resumes_exactly(
    make_trainer: Callable[..., Trainer],
    *,
    stop_at: Iterable[int] = (1, 4),
    ignore: Collection[str] = (),
) -> None:
    """Check that a training that is cut off and resumed, or goes back, ends as if undisturbed.

    Weights, optimizers, schedules, counters, metrics, random numbers and the state of every hook
    are compared, bit by bit. The cut is an exception right after the checkpoint, in this process;
    ``hookloop verify-resume`` kills whole processes instead. One more training is not cut: it goes
    back to the same checkpoint once, with `Run.rewind`.

    Args:
        make_trainer: Called with ``run_dir`` and ``resume``; returns a new trainer with new parts.
        stop_at: The iterations after which to cut.
        ignore: Entries of hooks' states that need not be the same, such as those that count time.

    >>> assert_resumes_exactly(tiny_trainer)
    """
    with TemporaryDirectory(prefix="hookloop-test-") as folder:
        whole = make_trainer(run_dir=Path(folder) / "whole", resume=None)
        whole.train()
        for iteration in stop_at:
            assert iteration < whole.run.progress.iter, (
                f"The training has only {whole.run.progress.iter} iterations: it cannot be cut "
                f"after {iteration}."
            )
            place = Path(folder) / f"cut_{iteration}"
            _train_and_cut(make_trainer(run_dir=place, resume=None), iteration)
            resumed = make_trainer(run_dir=place, resume=True)
            resumed.train()
            differences = compare(_final(whole, ignore), _final(resumed, ignore))
            assert not differences, (
                f"A run that was cut after iteration {iteration} and resumed ends differently: "
                f"{_listed(differences)}. State that has to survive goes through state_dict and "
                "load_state_dict."
            )
            back = make_trainer(run_dir=Path(folder) / f"back_{iteration}", resume=None)
            _train_and_go_back(back, iteration)
            differences = compare(_final(whole, ignore), _final(back, ignore))
            assert not differences, (
                f"A run that went back to iteration {iteration} once ends differently: "
                f"{_listed(differences)}. A hook that uses its loaded state in before_train has to "
                "do so in after_rewind, too."
            )


def assert_same_bits(one: torch.nn.Module, other: torch.nn.Module) -> None:
    """Check that two models hold the same weights, to the last bit."""
    differences = compare({"model": one.state_dict()}, {"model": other.state_dict()})
    assert not differences, _listed(differences)


# A class of its own, so that an error of the hook does not pass for the cut.
class _CutError(Exception):
    """Ends a training where a kill would."""


def _train_and_cut(trainer: Trainer, iteration: int) -> None:
    def save_then_cut(run: Run) -> None:
        if run.progress.iter == iteration:
            run.save()
        # One iteration later, because the loop saves only after this point, between two iterations.
        elif run.progress.iter > iteration:
            raise _CutError

    attach = trainer.on("after_train_iter", priority="HIGHEST", takes_part_in_training=True)
    attach(save_then_cut)
    try:
        trainer.train()
    except _CutError:
        return
    # A hook may stop the run earlier. Then nothing was cut, and the comparison would show nothing.
    raise AssertionError(f"The training did not get beyond iteration {iteration}.")


def _train_and_go_back(trainer: Trainer, iteration: int) -> None:
    went_back: list[int] = []

    def save_then_go_back(run: Run) -> None:
        if run.progress.iter == iteration and not went_back:
            run.save()  # As iter_<n>.pth.
        elif run.progress.iter == iteration + 1 and not went_back:
            went_back.append(iteration)
            run.rewind(iteration)

    attach = trainer.on("after_train_iter", priority="HIGHEST", takes_part_in_training=True)
    attach(save_then_go_back)
    trainer.train()
    trainer.run._internals.changes = []  # The rewind itself is one.


def _final(trainer: Trainer, ignore: Collection[str]) -> dict[str, object]:
    state = dict(RunState(trainer.run).gather())
    hooks = state["hooks"]
    assert isinstance(hooks, dict)
    state["hooks"] = {
        name: {key: value for key, value in own.items() if key not in ignore}
        for name, own in hooks.items()
        if own  # The hook that goes back has none, and is not in the other run.
    }
    return state


def _check_state(hook: Hook, again: Hook, clocks: Collection[str]) -> None:
    state = hook.state_dict()
    file = io.BytesIO()
    # Through a file, because a copy in memory would keep objects that a checkpoint cannot hold.
    torch.save(state, file)
    file.seek(0)
    name = type(hook).__name__
    try:
        loaded = torch.load(file, weights_only=True)
    except Exception as error:
        raise AssertionError(
            f"{name}.state_dict() cannot be read back from a checkpoint: return plain containers, "
            f"numbers, text and tensors. {error}"
        ) from error
    again.load_state_dict(loaded)
    # The two steps are checked apart: first what the file changes, then what load_state_dict does.
    kept = [{key: one for key, one in s.items() if key not in clocks} for s in (state, loaded)]
    differences = compare({name: kept[0]}, {name: kept[1]})
    assert not differences, f"The state changes on its way through a file: {_listed(differences)}."
    theirs = {key: one for key, one in again.state_dict().items() if key not in clocks}
    differences = compare({name: kept[0]}, {name: theirs})
    assert not differences, (
        f"{name}.load_state_dict does not give back what state_dict returned: "
        f"{_listed(differences)}."
    )


def _check_failure(hook: Hook, make_trainer: Callable[..., Trainer], place: Path) -> None:
    trainer = make_trainer(hook, run_dir=place)

    @trainer.on("after_train_iter")
    def fail(run: Run) -> None:
        # In the second epoch, so that the hook has state from a whole epoch when the run fails.
        if run.progress.iter == ITERS_PER_EPOCH + 1:
            raise _CutError

    try:
        trainer.train()
    except _CutError as error:
        # A failure at the end of a failed run becomes a note of the first one, so that it hides
        # nothing.
        notes = [note for note in getattr(error, "__notes__", []) if note.startswith("also,")]
        assert not notes, f"{type(hook).__name__} fails itself when the run has failed: {notes[0]}."


def _points_of(make_trainer: Callable[..., Trainer]) -> list[Any]:
    """Return the mount points that the trainer's project declares."""
    engine = {point.name for point in POINTS}
    with TemporaryDirectory(prefix="hookloop-test-") as folder:
        # Only a Trainer that was made knows the points that its project declares.
        points = make_trainer(run_dir=Path(folder) / "run").run._plan.points
    return [point for name, point in points.items() if name not in engine]


def _tiny_data(*, shuffle: bool = False) -> DataLoader[Any]:
    # A generator of its own: the data are the same whatever was drawn before.
    inputs = torch.randn(12, 4, generator=torch.Generator().manual_seed(1))
    return DataLoader(TensorDataset(inputs, inputs[:, :3].argmax(1)), batch_size=4, shuffle=shuffle)


def _accuracy(output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return (output.argmax(1) == targets).float().mean()


def _listed(differences: list[Difference]) -> str:
    return "; ".join(map(str, differences))
