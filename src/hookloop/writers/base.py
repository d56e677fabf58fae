"""`Writer`: the interface of all backends."""

from __future__ import annotations

import importlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType

from hookloop.errors import HookError
from hookloop.writers.records import Config, Image, Record, Scalars

_log = logging.getLogger("hookloop")


class Writer(ABC):
    """Sends records to one backend, in their order.

    A writer ignores the kinds of records that its backend cannot show. It may raise an error; its
    owner decides what that means for the run (`Background` and `Multi` continue without it).

    Attributes:
        name: Its name in warnings.
    """

    name: str = "writer"

    @abstractmethod
    def write(self, records: Iterable[Record]) -> None:
        """Send records."""

    def write_scalar(self, name: str, value: float, step: int) -> None:
        """Send one number."""
        # A numpy or torch number would not be JSON.
        self.write([Scalars({name: float(value)}, step)])

    def write_image(self, name: str, image: object, step: int, caption: str = "") -> None:
        """Send one image: a tensor, an array or a matplotlib figure."""
        self.write([Image(name, image, step, caption)])  # type: ignore[arg-type]

    def write_config(self, config: Mapping[str, object]) -> None:
        """Send the settings of the run."""
        self.write([Config(config)])

    def held(self) -> Mapping[str, int]:
        """Return the newest step that the backend already holds of each name.

        A backend that knows only one step for all names returns it under an empty name. A resumed
        run uses this to send nothing twice.
        """
        return {}

    def held_name(self, name: str) -> str:
        """Return the backend's own form of a name, as `held` uses it."""
        return name

    def flush(self) -> None:  # noqa: B027 - optional: most backends have nothing to do
        """Wait until everything written so far has left this process."""

    def close(self) -> None:  # noqa: B027 - as above
        """Send what is left and release the backend."""


Report = Callable[[Writer, BaseException], None]
"""A function that reports a writer and the error with which it failed."""


def warn_of_failure(writer: Writer, error: BaseException) -> None:
    """Warn that a run continues without one of its writers."""
    _log.warning(
        "The writer '%s' failed and is switched off for the rest of the run: %s: %s",
        writer.name,
        type(error).__name__,
        error,
    )


def require(package: str, extra: str, who: str) -> ModuleType:
    """Import an optional package, or raise an error with the command that installs it."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        # A package may itself miss another one: name the one that has to be installed.
        missing = (error.name or package).partition(".")[0]
        raise HookError(
            f"{who} needs the package '{missing}', which is not installed: "
            f"pip install 'hookloop[{extra}]'"
        ) from error


class Multi(Writer):
    """Sends every record to several writers; one that fails is dropped, the others continue.

    Args:
        writers: The writers, in the order in which they get each record.
        report: Called with each writer that fails.
    """

    name = "multi"

    def __init__(self, *writers: Writer, report: Report = warn_of_failure) -> None:
        self.writers = list(writers)
        self._report = report

    def write(self, records: Iterable[Record]) -> None:
        """Send records to each writer."""
        listed = list(records)  # An iterator would be empty after the first writer.
        self._each(lambda writer: writer.write(listed))

    def flush(self) -> None:
        """Flush each writer."""
        self._each(lambda writer: writer.flush())

    def close(self) -> None:
        """Close each writer."""
        self._each(lambda writer: writer.close())

    def _each(self, action: Callable[[Writer], None]) -> None:
        for writer in list(self.writers):  # A copy: one that fails is removed.
            try:
                action(writer)
            except Exception as error:  # noqa: BLE001 - reported, and the writer is dropped
                self._report(writer, error)
                self.writers.remove(writer)
