"""`Writer`: the one interface of all backends."""

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
    """Sends records to one backend, in the order given.

    A kind of record that a backend has no place for is left out. A writer may raise; who holds it
    decides what that means for the run (`Background` and `Multi` go on without it).

    Attributes:
        name: What warnings call it.
    """

    name: str = "writer"

    @abstractmethod
    def write(self, records: Iterable[Record]) -> None:
        """Send records."""

    def write_scalar(self, name: str, value: float, step: int) -> None:
        """Send one number."""
        self.write([Scalars({name: float(value)}, step)])

    def write_image(self, name: str, image: object, step: int, caption: str = "") -> None:
        """Send one picture: a tensor, an array or a matplotlib figure."""
        self.write([Image(name, image, step, caption)])  # type: ignore[arg-type]

    def write_config(self, config: Mapping[str, object]) -> None:
        """Send the settings of the run."""
        self.write([Config(config)])

    def held(self) -> Mapping[str, int]:
        """Return the newest step of each name that the backend holds, as far as it tells.

        Under an empty name stands the step up to which it holds all others.
        """
        return {}

    def held_name(self, name: str) -> str:
        """Return how the backend calls a name."""
        return name

    def flush(self) -> None:  # noqa: B027 - most backends have nothing to do
        """Return when everything written so far is out of this process."""

    def close(self) -> None:  # noqa: B027 - as above
        """Send what is left and let the backend go."""


Report = Callable[[Writer, BaseException], None]
"""Reports a writer that failed."""


def warn_of_failure(writer: Writer, error: BaseException) -> None:
    """Say, once, that a run goes on without one of its writers."""
    _log.warning(
        "The writer '%s' failed and is switched off for the rest of the run: %s: %s",
        writer.name,
        type(error).__name__,
        error,
    )


def require(package: str, extra: str, who: str) -> ModuleType:
    """Import an optional package, or say which command installs it."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        missing = (error.name or package).partition(".")[0]
        raise HookError(
            f"{who} needs the package '{missing}', which is not installed: "
            f"pip install 'hookloop[{extra}]'"
        ) from error
