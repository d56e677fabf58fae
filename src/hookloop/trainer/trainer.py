"""`Trainer`: the public class, a facade over the parts that do the work.

inputs, updates, default_hooks   what the user brings, checked and normalized
planning                         which hook acts where
session                          the life of a run, from its directory to its outcome
engine/loop                      the training itself
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from inspect import GEN_CLOSED, getgeneratorstate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from hookloop.checkpoint.saving.checkpoints import Checkpoints
from hookloop.checkpoint.state.undeclared import Undeclared
from hookloop.data.group_sizes import Accumulate, GroupSizes
from hookloop.data.limits import DataLimits
from hookloop.data.stream import Batches
from hookloop.engine.hook import FunctionHook, Hook, Priority
from hookloop.engine.internals import Internals
from hookloop.engine.loop import Assembly, Loop
from hookloop.engine.plan import Plan
from hookloop.engine.points import PointTable
from hookloop.engine.run import Phase, Run
from hookloop.errors import caused_by
from hookloop.every import Every
from hookloop.lr_schedule import Schedule
from hookloop.metrics.meters import Accumulating, Metric, by_name
from hookloop.metrics.results import Results
from hookloop.metrics.store import MetricStore
from hookloop.outcome import Outcome
from hookloop.parallel.ranks import Ranks
from hookloop.parallel.settings import Parallel
from hookloop.parallel.world import World, choose_device
from hookloop.runs.run_log import logged
from hookloop.secret import show_references
from hookloop.trainer.arithmetic import Arithmetic
from hookloop.trainer.compilation import Compile
from hookloop.trainer.counting import start_counting
from hookloop.trainer.default_hooks import default_hooks as build_default_hooks
from hookloop.trainer.default_hooks import own_hooks, with_own
from hookloop.trainer.ending import Unchanged
from hookloop.trainer.guard import ChecksArguments
from hookloop.trainer.inputs import (
    check_ends,
    check_mixture,
    check_own_updates,
    check_trainable,
    check_updates,
    check_validations,
    make_progress,
    named_optimizers,
    named_schedules,
    place_model,
    set_limits,
    warn_of_metrics,
    whole,
)
from hookloop.trainer.intended_changes import Resume
from hookloop.trainer.model_table import count_parameters
from hookloop.trainer.other_weights import using_checkpoint
from hookloop.trainer.planning import Planner, Row, check_on_ranks, timetable_of
from hookloop.trainer.predicting import Predictions, Target, make_update, open_data
from hookloop.trainer.resume_checks import plain_arguments
from hookloop.trainer.schedule_curve import judge_schedules, report_schedules
from hookloop.trainer.session import Session
from hookloop.trainer.settings import Data, Setup, Validation
from hookloop.trainer.several_ranks import join_ranks
from hookloop.trainer.start import Start
from hookloop.trainer.state.roots import RootsOfRun
from hookloop.trainer.state.run_state import RunAsOrigin, RunState
from hookloop.trainer.val_intervals import make_validation
from hookloop.update.application import make_scaler
from hookloop.update.assemble import (
    Loss,
    Makes,
    assemble,
    changed_by_hooks,
    check_assembly,
    make_updates,
)
from hookloop.update.first_loss import watching_first_calls
from hookloop.update.loss_weights import warn_if_uncounted
from hookloop.update.objective import Precision, autocast
from hookloop.update.update import Step, Update

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from torch.optim.lr_scheduler import LRScheduler

Function = TypeVar("Function", bound=Callable[..., None])


class Trainer(ChecksArguments):
    """Trains a model; everything beyond forward, loss, backward and update is a hook.

    Args:
        model: The module to train.
        train_data: Any iterable of batches, or a mapping from names to several of them.
        val_data: The same as ``train_data``, for validation.
        loss: ``loss(output, targets)`` for batches of (inputs, targets), or of mappings with
            ``input`` and ``target``.
        step: Instead of ``loss``, ``step(run, batch)``, which returns the loss or a mapping with
            it. A mapping from optimizers' names to such functions makes one update per optimizer,
            in turn. An `Update` makes the whole update itself. Without ``loss`` and ``step``, the
            model returns its loss, or a mapping with it.
        optimizer: One optimizer, or a mapping from names to several.
        schedule: One of torch's schedulers (stepped every iteration), a `Schedule`, or a mapping
            from optimizers' names to these.
        metrics: What evaluations compute: a mapping from names to functions ``metric(output,
            targets)`` or torchmetrics objects; or a ``MetricCollection`` of torchmetrics.
        max_epochs: Epochs to train.
        max_iters: Iterations to train. With both limits, the one that is reached first ends the
            training.
        val_every: How often to validate: ``"1 epoch"``, ``500`` (iterations), ``"10 min"``; a
            mapping from streams' names to intervals; or a `Validation`, which also says when to
            begin.
        accumulate: Microbatches per iteration; ``{0: 1, "5 epochs": 4}`` changes it during the run,
            ``"auto"`` splits batches when memory runs out.
        clip_norm: Limit of the gradients' norm; None for no limit.
        precision: ``"fp32"``, or for mixed precision ``"bf16"`` or ``"fp16"``.
        device: Where to train: ``"cpu"``, ``"cuda:1"``; ``"auto"`` for the best device there is.
        compile: Whether to compile the model, in place; or options for ``torch.compile``:
            ``{"mode": "max-autotune", "dynamic": True}``.
        hooks: Your hooks, or a mapping from names to them.
        default_hooks: Changes to the default hooks, by name: a hook replaces one, None removes it.
            False removes all of them.
        run_dir: The run's directory; by default a new one under ``runs/``.
        seed: Seed for Python, NumPy and torch, set when training starts: after all is built.
        resume: True continues the run in ``run_dir``; ``"auto"`` does so too, or begins it if it is
            not there; a path continues that run or checkpoint. A `Resume` also says what differs on
            purpose.
        parallel: How several ranks work together: ``"replicated"``, or a mapping of settings.
        data: What else is read, how, and how much of it: a `Data`, or a mapping of its settings.
        setup: What is settled once, before the first iteration: a `Setup`, or a mapping.

    Example:
        >>> import torch
        >>> model = torch.nn.Linear(1, 1)
        >>> data = [(torch.ones(4, 1), torch.zeros(4, 1))] * 8
        >>> trainer = Trainer(
        ...     model,
        ...     train_data=data,
        ...     loss=torch.nn.functional.mse_loss,
        ...     optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        ...     max_epochs=2,
        ...     default_hooks=False,
        ... )
        >>> trainer.train().status, trainer.run.progress.iter
        ('completed', 16)
    """

    def __init__(  # noqa: PLR0913 - one name for each thing a user may bring
        self,
        model: torch.nn.Module,
        *,
        train_data: Batches | Mapping[str, Batches] | None = None,
        val_data: Batches | Mapping[str, Batches] | None = None,
        loss: Loss | None = None,
        step: Step | Update | Mapping[str, Step] | None = None,
        optimizer: torch.optim.Optimizer | Mapping[str, torch.optim.Optimizer] | None = None,
        schedule: Schedule | LRScheduler | Mapping[str, Schedule | LRScheduler] | None = None,
        metrics: Mapping[str, Metric] | Accumulating | None = None,
        max_epochs: int | None = None,
        max_iters: int | None = None,
        val_every: Validation | Every | int | str | Mapping[str, Any] = "1 epoch",
        accumulate: Accumulate = 1,
        clip_norm: float | None = None,
        precision: Precision = "fp32",
        device: str | torch.device = "auto",
        compile: Compile = False,
        hooks: Iterable[Hook] | Mapping[str, Hook | None] | None = None,
        default_hooks: Mapping[str, Hook | None] | Literal[False] | None = None,
        run_dir: str | Path | None = None,
        seed: int | None = None,
        resume: Resume | bool | str | Path | None = None,
        parallel: Parallel | Mapping[str, object] | str | None = None,
        data: Data | Mapping[str, Any] | None = None,
        setup: Setup | Mapping[str, Any] | None = None,
    ) -> None:
        arguments, when = locals(), Validation.parse(val_every)
        data, setup = Data.parse(data), Setup.parse(setup)
        together = Parallel.parse(parallel)
        world = replace(
            World.from_environment(), logical=together.logical or 0, tensor=together.tensor
        )
        standard = build_default_hooks(default_hooks, is_alone=world.is_alone or world.logical > 0)
        self._planner = Planner(with_own(standard, own_hooks(hooks)), PointTable(setup.points))
        start, where = Start(run_dir, resume, setup.load_from), choose_device(device, world)
        arithmetic = Arithmetic(setup.deterministic, setup.matmul)
        self._count_tokens = data.count_tokens
        self._prepared = place_model(model, where, compile, setup.prepare, precision)
        self._limits = limits = DataLimits(data.limit, data.overfit, data.seed_samples)
        epoch_iters = limits.epoch_iters(data.epoch_iters, train_data, accumulate)
        source = limits.train(train_data, accumulate, epoch_iters, mix=data.mix, seed=seed)
        check_mixture(source, loss)
        self.run = Run(
            model=model,
            optimizers=named_optimizers(optimizer, model),
            schedules=named_schedules(schedule),
            train_data=source,
            val_data=limits.val(val_data, data.val_mix),
            metrics=MetricStore(),
            dir=Path(run_dir or "runs"),  # Until the session opens the real one.
            config=show_references(setup.config or {}),  # Hooks, files and trackers see no secret.
            world=world,
            device=where,
            progress=make_progress(source, max_epochs, max_iters, epoch_iters, accumulate),
            _plan=Plan([], self._planner.points),  # Made later: `on` may still add hooks.
            _internals=Internals(
                test_data=limits.test(data.test, data.val_mix),
                predict_data=limits.predict(data.predict),
                ranks=Ranks(world, together.timeout),
                seed=None if seed is None else whole("seed", seed),
                loss_function=loss,
                step_function=step,
                precision=precision,
                scaler=make_scaler(precision, where),
                meters=by_name(metrics),
                arguments=plain_arguments(
                    arguments | {"data": replace(data, epoch_iters=epoch_iters)}, self._prepared
                ),
            ),
        )
        own = self.run._internals
        join_ranks(self.run, together)
        roots = RootsOfRun(self.run, self._prepared)
        own.undeclared = Undeclared(roots, where)
        self._state = RunState(self.run)
        self._context = autocast(precision, where)
        self._updates = make_updates(
            loss, step, self.run.optimizers, clip_norm=clip_norm, scaler=own.scaler,
            context=self._context,
        )  # fmt: skip
        self._loop = Loop(
            self.run,
            self._updates,
            metrics=watching_first_calls(own.meters),
            validation=make_validation(
                when.every, when.begin, when.at_start, self.run.val_data, world
            ),
            sizes=GroupSizes(accumulate),
            epoch_iters=epoch_iters,
            checkpoints=Checkpoints(RunAsOrigin(self.run, self._state, start.restore)),
        )
        self._makes: Makes | None = None
        self._session = Session(self.run, self._loop, start, self._state, together, arithmetic)

    def __repr__(self) -> str:
        run = self.run
        count = count_parameters(run.model.parameters())
        parts = [
            f"{type(run.model).__name__} with {count} parameters",
            *(type(optimizer).__name__ for optimizer in run.optimizers.values()),
            f"{run.progress} done",
            *([str(run.outcome)] if run.outcome.status != "running" else []),
        ]
        hooks = ", ".join(hook.name for hook in self.run.hooks)
        return f"<Trainer: {'; '.join([*parts, *([f'hooks {hooks}'] if hooks else [])])}>"

    @property
    def resumed_from(self) -> str | None:
        """The checkpoint that ``resume=`` has loaded; None until then, and without one."""
        return self._session.start.loaded

    def train(self, *, max_epochs: int | None = None, max_iters: int | None = None) -> Outcome:
        """Train until a limit, a request to stop, or a signal.

        Called again, it continues where it ended, as one longer training would.

        Args:
            max_epochs: A new limit instead of the one given before; counted from the first epoch.
            max_iters: The same for iterations.

        Raises:
            ModelError: If the limit is already reached.
            Interrupted: When a signal ended the run; it has ended in order by then.
        """
        self.run._internals.purpose = "train"
        self._planner.make(self.run, self._updates)
        # Not in the constructor: an optimizer that train() cannot step may be used in `loop`.
        updates = self._checked_updates()
        check_trainable(self.run)
        count = start_counting(self._loop, self._count_tokens)
        set_limits(self.run.progress, max_epochs, max_iters)
        # After set_limits: the only limit may be the one that is given to this call.
        check_ends(self.run)
        check_validations(self.run, begin=self._loop.validation.begin)
        if self._session.is_over():
            return self.run.outcome
        self._planner.use()
        # An `Update` of the user's own may spread one update over several iterations, as `loop`
        # may.
        own_updates = any(one.keeps_gradients for one in updates)
        is_whole = max_epochs is None and max_iters is None
        problems = judge_schedules(self.run, is_whole=is_whole)  # Before a resume moves them.
        with self._session.training(own_updates=own_updates) as go_back:
            self._limits.warn()
            report_schedules(problems)
            warn_of_metrics(self.run)
            if self.run.world.is_main and (
                self.run.world.cuts_batches or not self._loop.sizes.is_one
            ):
                warn_if_uncounted(self.run._internals.loss_function)
                data, is_free = self.run.train_data, self._loop.epoch_iters is None
                if data is not None and is_free:
                    self._loop.sizes.warn_if_never_full(data.num_batches)
            self._loop.train(Assembly(*self._assemble(updates), count, go_back))
            updates[0].check_end(self.run)
            self._prepared.report()
        return self.run.outcome

    @contextmanager
    def loop(self) -> Iterator[Iterator[Any]]:
        """Train with updates of your own: ``with trainer.loop() as batches: for one in batches:``.

        All but the update is as in `train`: the batches, on the device, epoch after epoch, from
        where a resumed run was cut off; validation, checkpoints, hooks. A ``break`` counts the
        iteration and ends the run, as ``trainer.run.stop`` does.

        Raises: HookError: If a hook acts at a point within the update, which never fires here.
        Interrupted: When a signal ended the run; it has ended in order by then.
        """
        self.run._internals.purpose = "train"
        # Which numbers the body will record is known only when it calls `record`, so hooks may read
        # any. There is no check_ends: the body may end the training itself, with a break.
        self._planner.make(self.run, self._updates, besides=frozenset({"train/*"}))
        check_own_updates(self.run, self._updates, self._loop.sizes)
        check_trainable(self.run)
        count = start_counting(self._loop, self._count_tokens)
        set_limits(self.run.progress, None, None)
        if self._session.is_over():
            # A context manager has to yield exactly once, also when nothing is left to train.
            yield iter(())
            return
        self._planner.use()
        problems = judge_schedules(self.run)  # Before a resume moves them.
        with self._session.training(own_updates=True) as go_back:
            self._limits.warn()
            report_schedules(problems)
            unchanged = Unchanged(self.run)
            groups = self._loop.iterations(Assembly(count=count, go_back=go_back))
            # Each group has one batch: check_own_updates has rejected any other value of
            # accumulate=.
            yield (group[0] for group in logged(groups))
            # After a break the generator still waits at its yield. It ends by itself only at the
            # end of the training.
            if getgeneratorstate(groups) != GEN_CLOSED:
                self.run.stop("the loop was left before its end")
            for _ in groups:  # What comes after the last iteration.
                pass
            unchanged.check_end(self.run)
            self._prepared.report()

    def record(self, loss: Tensor, **others: Tensor | float) -> None:
        """Record the loss of an update that you made, and other numbers; nothing is read."""
        # The tensor is kept as it is: reading its number would wait for a GPU in every iteration.
        self.run.loss = loss
        for name, value in {"loss": loss, **others}.items():
            self.run.metrics.put(f"train/{name}", value)

    def validate(self, *, checkpoint: str | Path | None = None) -> Results:
        """Evaluate on the validation data, outside of any training.

        Args:
            checkpoint: Evaluate the weights of this checkpoint instead: ``"best"``, ``"last"``, its
                name or path. Afterwards the model has its own again.

        Raises:
            Interrupted: When a signal cut it short: there is no result.
        """
        with self._evaluating("val", checkpoint):
            if checkpoint is not None:  # It says nothing about the state of the training.
                return self._loop.evaluation.validate()
            return self._loop.validate()

    def test(self, *, checkpoint: str | Path | None = None) -> Results:
        """Evaluate on the test data.

        Args:
            checkpoint: As for `validate`.

        Raises:
            Interrupted: When a signal cut it short: there is no result.
        """
        with self._evaluating("test", checkpoint):
            return self._loop.evaluation.test()

    def predict(
        self,
        data: Batches | str | None = None,
        *,
        to: Target = None,
        step: Step | None = None,
        checkpoint: str | Path | None = None,
    ) -> Any:  # noqa: ANN401 - what the model returns
        """Compute the outputs of the model for data, without a loss.

        Args:
            data: Batches of inputs, or of (inputs, targets), whose targets are ignored; a tensor
                as a single batch; or the name of a stream: ``"test_data"``, ``"val_data.clean"``.
                By default ``Data(predict=...)`` of the Trainer.
            to: A file that ends in ``.csv``, ``.parquet`` or ``.npz``, written batch by batch; or a
                function that gets the output for each batch.
            step: ``step(run, batch)`` that returns the output, where the model is not simply called
                on the inputs.
            checkpoint: As for `validate`.

        Returns:
            The outputs joined along the samples, on the CPU, in the order of the data; with a file
            its path, with a function None.

        Raises:
            Interrupted: When a signal cut it short: there is no result, and no file.
        """
        run = self.run
        predictions = Predictions(run, to)
        update = make_update(step, self._context, has_loss=run._internals.loss_function is not None)
        before = run._internals.predict_data
        with caused_by("predict_data"):
            run._internals.predict_data = {"": open_data(run, data)}
        run.loss = None  # Of the training, which hooks must not take for one of this batch.
        try:
            with self._evaluating("predict", checkpoint):
                return predictions.make(self._loop, update)
        finally:
            run._internals.predict_data = before

    @contextmanager
    def _evaluating(self, purpose: Phase, checkpoint: str | Path | None) -> Iterator[None]:
        self.run._internals.purpose = purpose
        self._planner.make(self.run, self._updates)
        self._planner.use()
        # Not `training`: an evaluation takes no lock, so it may look at a run that another process
        # is training.
        with self._session.running(), using_checkpoint(self.run, checkpoint):
            yield

    def check(self) -> None:
        """Raise whatever `train` would reject before its first iteration, and train nothing."""
        self.check_hooks()
        for hook in self.run.hooks:
            hook.check_setup()
        if not self.run.world.is_alone:
            check_on_ranks(self.run.hooks)
        # A Trainer that only evaluates is complete without training data, optimizer and limits.
        if self.run.train_data is not None:
            check_trainable(self.run)
            self._checked_updates()
            check_ends(self.run)

    def _checked_updates(self) -> list[Update]:
        """Return the updates of a training, as the hooks change them; reject what cannot be."""
        updates = changed_by_hooks(self.run, self._updates)
        check_updates(self.run, updates)
        check_assembly(self.run, updates, self._loop.sizes, self._session.parallel)
        return updates

    def _assemble(self, updates: list[Update]) -> Makes:
        """Return what makes the updates; on ranks that is done once, as torch keeps its parts."""
        if self._makes is not None and self.run.world.cuts_batches:
            return Makes(self._makes.later, self._makes.later)
        parallel = self._session.parallel
        keep = None
        if self._loop.sizes.is_auto:
            keep = partial(self._state.keep, "buffers", "metrics", "generators")
        self._makes = assemble(self.run, updates, parallel, keep)
        return self._makes

    def check_hooks(self) -> None:
        """Raise whatever is wrong with the hooks: names, methods, order, what they read and write.

        It is the part of `check` that needs no data, service or disk.
        """
        self._planner.make(self.run, self._updates)
        for hook in self.run.hooks:
            hook.check_in(self.run)

    def timetable(self) -> list[Row]:
        """List which hook acts at which mount point, in order."""
        self.check_hooks()
        return timetable_of(self.run._plan)

    def on(
        self,
        point: str,
        *,
        every: Every | int | str | None = None,
        priority: Priority | int | str = Priority.NORMAL,
        takes_part_in_training: bool = False,
    ) -> Callable[[Function], Function]:
        """Attach a function to a mount point: ``@trainer.on("after_train_iter", every=50)``."""
        # Looked up now, so that a misspelled point fails in the user's line and not when training
        # starts.
        name = self._planner.points[point].name

        def attach(function: Function) -> Function:
            hook = FunctionHook(
                function,
                name,
                every=every,
                priority=priority,
                takes_part_in_training=takes_part_in_training,
            )
            self._planner.attach(hook)
            return function

        return attach
