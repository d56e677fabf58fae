"""`Notify`: send a message when a training ends."""

from __future__ import annotations

import json
import socket
import threading
import warnings
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from hookloop.engine.hook import Hook, Priority
from hookloop.errors import HookError, nearest
from hookloop.metrics.store import stream_of
from hookloop.secret import Secret, hide, redact
from hookloop.writers.base import require

if TYPE_CHECKING:
    from hookloop.engine.run import Run

Status = Literal["completed", "stopped", "interrupted", "failed"]
STATUSES: tuple[Status, ...] = ("completed", "stopped", "interrupted", "failed")
TEMPLATE = "{name} on {host}: {outcome} after iteration {iter}, epoch {epoch}. {metrics}"
FIELDS = ("name", "host", "status", "reason", "outcome", "iter", "epoch", "metrics", "dir")
SHORTEST_TAIL = 16
"""Shorter paths, such as /webhook, are not secrets, and may be part of any text."""


class Notify(Hook):
    """Send a message at the end of a training, to a webhook or to any service that Apprise knows.

    A plain ``http://`` or ``https://`` address gets a JSON object by POST: the message as ``text``
    (and as ``content``, its name on Discord), with ``name``, ``status``, ``reason``, ``iter``,
    ``epoch`` and ``metrics``. Any other address is a URL of Apprise, such as ``tgram://...``. The
    address is never written to a file or a log, because it often holds a token. In a config, write
    ``url: ${secret:KEY}``. If a service fails or does not answer, that is reported and changes
    nothing else.

    Args:
        url: The address, or several.
        on: Which endings to report: ``"completed"``, ``"stopped"`` (by a hook), ``"interrupted"``
            (by a signal), ``"failed"``.
        template: The message, with ``{name}`` of the run directory, ``{host}``, ``{status}``,
            ``{reason}``, ``{outcome}`` (status and reason), ``{iter}``, ``{epoch}``, ``{metrics}``
            of validation and test, and ``{dir}``.
        timeout: Seconds to wait for an answer before the run ends without one.

    Example:
        >>> Notify("https://example.org/hook", on=["failed"], template="{name} failed: {reason}").on
        ('failed',)
        >>> Notify("https://example.org/hook", template="{nmae}")
        Traceback (most recent call last):
        hookloop.errors.HookError: Notify: template has '{nmae}'. Did you mean 'name'? ...
    """

    ranks = "first"
    priority = Priority.LOWEST  # After hooks that put the last numbers.
    on_error = "disable"
    draws_random_numbers = False
    sends = True

    def __init__(
        self,
        url: str | Sequence[str],
        on: Sequence[Status] = STATUSES,
        template: str = TEMPLATE,
        *,
        timeout: float = 10.0,
    ) -> None:
        urls = [url] if isinstance(url, str) else list(url)
        if not urls:
            raise HookError("Notify: give at least one url.")
        for one in urls:
            _keep_secret(one)
        for status in on:
            if status not in STATUSES:
                raise HookError(
                    f"Notify: on={status!r}: write some of {', '.join(STATUSES)}."
                    f"{nearest(str(status), STATUSES)}"
                )
        _check_template(template)
        if not timeout > 0:
            raise HookError(f"Notify: timeout must be positive, not {timeout}.")
        self.on = tuple(on)
        self.template = template
        self.timeout = timeout
        self._sends = [_sender_to(one, timeout) for one in urls]
        self._has_begun = False

    def before_train(self, run: Run) -> None:
        self._has_begun = True

    def after_run(self, run: Run) -> None:
        has_begun, self._has_begun = self._has_begun, False
        status = run.outcome.status
        # Loading a run that was completed before does not end a training, nor does a test.
        if (
            status not in self.on
            or run._internals.purpose != "train"
            or not (has_begun or status == "failed")
        ):
            return
        fields = _describe(run)
        text = redact(self.template.format_map(fields)).strip()
        content = {"text": text, "content": text, **fields}
        problems: list[str] = []
        # In threads, all at once: a service that hangs takes the time limit, once.
        threads = [_start(send, text, content, problems) for send in self._sends]
        for thread in threads:
            thread.join(self.timeout)
        if any(thread.is_alive() for thread in threads):
            problems.append(f"no answer within {self.timeout:g} seconds")
        if problems:
            # Not one of our errors, which would ask the user to change something.
            raise ConnectionError(f"a message was not sent: {'; '.join(problems)}")


Send = Callable[[str, dict[str, object]], None]


def _describe(run: Run) -> dict[str, object]:
    """Return what a message may hold."""
    outcome, metrics = run.outcome, run.outcome.metrics
    shown = {name: value for name, value in metrics.items() if stream_of(name) in ("val", "test")}
    return {
        "name": run.dir.name,
        "host": socket.gethostname(),
        "status": outcome.status,
        "reason": outcome.reason,
        "outcome": str(outcome),
        "iter": run.progress.iter,
        "epoch": run.progress.epoch,
        "metrics": "  ".join(f"{name} {value:.4g}" for name, value in shown.items()),
        "dir": str(run.dir),
    }


def _start(
    send: Send, text: str, content: dict[str, object], problems: list[str]
) -> threading.Thread:
    def work() -> None:
        try:
            send(text, content)
        except Exception as error:  # noqa: BLE001 - reported by the hook, in its own thread
            problems.append(redact(f"{type(error).__name__}: {error}"))

    # With the context of the caller: what the thread logs belongs to the run. A daemon: a service
    # that hangs must not keep the process alive.
    thread = threading.Thread(target=copy_context().run, args=(work,), name="notify", daemon=True)
    thread.start()
    return thread


def _sender_to(url: str, timeout: float) -> Send:
    """Return a function that sends to an address; reject an address that is none."""
    if url.partition("://")[0].lower() not in ("http", "https"):
        return _sender_by_apprise(url)
    if not urlsplit(url).hostname:
        raise HookError("Notify: url= has no host: write 'https://host/path'.")

    def post(text: str, content: dict[str, object]) -> None:
        body = json.dumps(content, default=str).encode()
        request = Request(url, body, {"Content-Type": "application/json"})
        with urlopen(request, timeout=timeout) as answer:
            answer.read(1)

    return post


def _sender_by_apprise(url: str) -> Send:
    apprise = require("apprise", extra="notify", who="Notify")
    service = apprise.Apprise()
    with warnings.catch_warnings():  # The first call imports all services with what they use.
        warnings.simplefilter("ignore")
        is_known = service.add(str.__str__(url))
    if not is_known:
        raise HookError(
            "Notify: url= is neither an http(s) address nor a URL that Apprise knows: see "
            "https://github.com/caronc/apprise/wiki for the form of each service."
        )

    def send(text: str, content: dict[str, object]) -> None:
        if not service.notify(body=text, title=f"hookloop: {content['status']}"):
            raise ConnectionError("Apprise could not deliver it")

    return send


def _keep_secret(url: str) -> None:
    """Make sure that nothing which is written or sent shows the address."""
    parts = urlsplit(url)
    if not isinstance(url, Secret):
        hide(url, "${secret:NOTIFY_URL}")  # As what a config that shows it had better say.
    # In a URL of Apprise what stands for the host is often the token.
    tail = url.partition("://")[2]
    tail = tail.partition("/")[2] if parts.scheme in ("http", "https") else tail
    for secret in (tail, parts.password or ""):
        if len(secret) >= SHORTEST_TAIL:
            hide(secret, "<hidden>")


def _check_template(template: str) -> None:
    try:
        template.format_map(dict.fromkeys(FIELDS, ""))
    except KeyError as error:
        name = str(error.args[0])
        raise HookError(
            f"Notify: template has '{{{name}}}'.{nearest(name, FIELDS)} There are: "
            f"{', '.join(FIELDS)}."
        ) from error
    except (ValueError, IndexError, AttributeError) as error:
        raise HookError(
            f"Notify: template={template!r} cannot be filled in ({error}): write names in single "
            "braces, '{name}', and other braces twice."
        ) from error
