"""`AnswerRequests`: do what is asked of a live run through files in its directory."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

from hookloop.checkpoint.saving.request import Save
from hookloop.checkpoint.state.shape import Each, Maybe, Named, check_state, is_number
from hookloop.checkpoint.store.index import Saved
from hookloop.engine.hook import Hook, Priority
from hookloop.errors import HookError, HookloopError
from hookloop.hooks.ending._live_settings import find_setting
from hookloop.runs.asking import Request, give_answer, identity, take_requests
from hookloop.runs.changes import Change
from hookloop.runs.checkpoint_names import checkpoint_name
from hookloop.runs.life import Holder
from hookloop.runs.run_log import current_logs, show_on_stderr

if TYPE_CHECKING:
    from hookloop.engine.run import Run

_log = logging.getLogger("hookloop")

KEPT = ("max_epochs", "max_iters", "hooks.")
"""Settings that no other part of a checkpoint holds."""

PATIENCE = 2.0
"""Seconds that the end of a run waits for the thread that looks for requests."""


@dataclass(frozen=True)
class Waiting:
    """A request that was made of the loop and is answered when it is done.

    Attributes:
        request: The request.
        iter: The iteration after which it was made.
    """

    request: Request
    iter: int


class AnswerRequests(Hook):
    """Do what ``hookloop ask RUN save | validate | stop | set KEY=VALUE`` asks for.

    A thread looks for requests in the run's directory, so iterations cost nothing extra. The loop
    handles them between two iterations, the same two on all ranks. Changed settings are recorded in
    ``run.log`` and ``summary.json``, and a resume continues with them.

    Args:
        period: How often to look for requests, in seconds.

    Example:
        >>> AnswerRequests(period=5).period
        5
    """

    priority = Priority.VERY_HIGH  # Settings of the checkpoint are restored before they are read.
    takes_part_in_training = True
    draws_random_numbers = False

    def __init__(self, period: float = 1.0) -> None:
        if period <= 0:
            raise HookError(f"AnswerRequests: period must be positive, not {period}.")
        self.period = period
        self._kept: dict[str, tuple[float | None, float]] = {}
        self._waiting: list[Waiting] = []
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        self._has_failed = False

    def state_dict(self) -> dict[str, object]:
        # Without any, there is no state that a resume could miss.
        return {"kept": {key: list(pair) for key, pair in self._kept.items()}} if self._kept else {}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        check_state(state, {"kept?": Named(Each(Maybe(is_number), 2))})
        kept = cast("Mapping[str, tuple[float | None, float]]", state.get("kept", {}))
        self._kept = {key: (old, new) for key, (old, new) in kept.items()}

    def before_train(self, run: Run) -> None:
        self._restore_settings(run)
        if not run.world.is_main:
            return
        self._ended = threading.Event()
        # With the context of the run, to which its messages belong. A daemon: a file system that
        # hangs must not keep the process alive.
        self._thread = threading.Thread(
            target=copy_context().run,
            args=(self._look, run, self._ended),
            name="answer-requests",
            daemon=True,
        )
        self._thread.start()

    def after_save_checkpoint(self, run: Run, saved: Saved) -> None:
        for one in self._take_waiting("save", saved.iter):
            self.answer(run, one.request, checkpoint=str(saved.path), iter=one.iter)

    def after_val(self, run: Run) -> None:
        if not run.is_interrupted:  # Otherwise the run that resumes makes it again.
            for one in self._take_waiting("validate", run.progress.iter):
                self.answer(run, one.request, metrics=run.metrics.stream("val"))

    def after_run(self, run: Run) -> None:
        if self._thread is None:
            return
        self._ended.set()
        self._thread.join(PATIENCE)
        self._thread = None
        self._take(run)  # What came since the last look.
        left = [one.request for one in self._waiting]
        while run._internals.asked:
            call = run._internals.asked.popleft()
            if isinstance(call, partial) and call.func is act:
                left.append(call.args[0])
        self._waiting = []
        for request in left:
            self.answer(run, request, f"the training has ended: {run.outcome}")

    def do(self, run: Run, request: Request) -> None:
        """Do what is asked, on every rank."""
        if request.do == "set":
            self._set(run, request)
        elif request.do == "stop":
            run.stop(f"{request.by or 'somebody'} asked for it", everywhere=True)
            self.answer(run, request)
        elif request.do == "validate":
            if run._internals.val_every is None and not run.val_data:
                raise HookError("there is no validation data.")
            self._waiting.append(Waiting(request, run.progress.iter))
            run.validate(everywhere=True)
        else:
            self._waiting.append(Waiting(request, run.progress.iter))
            lost = partial(self.answer, run, request, "it could not be saved; see run.log.")
            name = checkpoint_name("iter", run.progress.iter)
            run.save(Save(name, owner=self.name, on_lost=lost), everywhere=True)
        self._note(run, request)

    def _set(self, run: Run, request: Request) -> None:
        # All are looked up before any is changed: a request is obeyed as a whole or not at all.
        found = [find_setting(run, key, value) for key, value in request.settings.items()]
        changes: list[Change] = []
        for one in found:
            one.apply()
            change = {"iter": run.progress.iter, "key": one.key, "old": one.old, "new": one.new}
            changes.append(cast("Change", {**change, "how": "asked"}))
            named = {"key": one.key, "old": one.old, "new": one.new, "how": "asked"}
            run._internals.interventions.add("change", run.progress.iter, **named)
            if one.key.startswith(KEPT):
                old = self._kept.get(one.key, (one.old, one.new))[0]
                self._kept[one.key] = (old, one.new)
        run._internals.changes.extend(cast("list[dict[str, object]]", changes))
        # Only now: settings that are changed together decide together what comes of them.
        outlook = [text for one in found if (text := one.outlook())]
        for text in outlook if run.world.is_main else ():
            for log in current_logs():
                log.note(text)
        more: dict[str, object] = {"outlook": outlook} if outlook else {}
        self.answer(run, request, problem="", changes=changes, **more)

    def _restore_settings(self, run: Run) -> None:
        """Continue with what was changed, unless the config has another value than then."""
        for key, (old, new) in list(self._kept.items()):
            try:
                setting = find_setting(run, key, new)
            except HookError as error:
                _log.info("%s is not restored: %s", key, error)
                continue
            if setting.old == old:
                setting.apply()

    def _look(self, run: Run, ended: threading.Event) -> None:
        while not ended.wait(self.period):
            self._take(run)

    def _take(self, run: Run) -> None:
        """Take the requests that wait, and hand them to the loop."""
        try:
            for number, found in take_requests(run.dir, identity(Holder.this())):
                if isinstance(found, str):
                    give_answer(run.dir, number, _content(run, None, found))
                    continue
                run._internals.asked.append(partial(act, found))
                if run.world.is_alone:  # Many ranks find it at their next sync point.
                    run._internals.requests.any = True
        except (OSError, HookloopError) as error:
            self._report(error)

    def _take_waiting(self, do: str, iteration: int) -> list[Waiting]:
        taken = [one for one in self._waiting if (one.request.do, one.iter) == (do, iteration)]
        self._waiting = [one for one in self._waiting if one not in taken]
        return taken

    def answer(self, run: Run, request: Request, problem: str = "", **more: object) -> None:
        """Write the answer to a request; the first rank does it."""
        self._waiting = [one for one in self._waiting if one.request is not request]
        if run.world.is_main:
            self._trying(give_answer, run.dir, request.id, _content(run, request, problem) | more)

    def _note(self, run: Run, request: Request) -> None:
        run._internals.interventions.add("asked", run.progress.iter, do=request.do, by=request.by)
        what = ", ".join(f"{key}={value:g}" for key, value in request.settings.items())
        text = f"{request.do} {what}".rstrip()
        text = f"Iteration {run.progress.iter}: {text}, asked for by {request.by or 'somebody'}."
        # It is intended, so it is not a warning; whoever watches the training sees it all the same.
        if request.do in ("set", "stop") and run.world.is_main:
            show_on_stderr(text)
        for log in current_logs():
            log.note(text)

    def _trying(self, write: object, *args: object) -> None:
        """Write something; a full disk must not end the training."""
        try:
            write(*args)  # type: ignore[operator]
        except (OSError, ValueError, HookloopError) as error:
            self._report(error)

    def _report(self, error: Exception) -> None:
        if not self._has_failed:
            _log.warning("Requests cannot be answered as they should: %s", error)
        self._has_failed = True


def act(request: Request, run: Run) -> None:
    """Do what is asked, and answer why not if that is rejected. Nothing of it ends the training."""
    hook = next(one for one in run.hooks if isinstance(one, AnswerRequests))
    try:
        hook.do(run, request)
    except Exception as error:  # noqa: BLE001 - e.g. of a hook's property; the asker gets it
        reason = (
            str(error) if isinstance(error, HookloopError) else f"{type(error).__name__}: {error}"
        )
        hook.answer(run, request, reason)


def _content(run: Run, request: Request | None, problem: str) -> dict[str, object]:
    done = run.progress
    answer: dict[str, object] = {"done": not problem, "iter": done.iter, "epoch": done.epoch}
    if request is not None:
        answer["do"] = request.do
    return answer | ({"reason": problem} if problem else {})
