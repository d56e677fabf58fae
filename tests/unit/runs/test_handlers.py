"""Handlers that come and go leave a logger as it was."""

import io
import itertools
import logging
import sys
from collections.abc import Callable, Iterator

import pytest

from hookloop.runs.handlers import (
    TemporaryHandler,
    has_own_handlers,
    is_on_screen,
    temporary_handlers,
)

NAME = "hookloop.test_handlers"


class Keep(TemporaryHandler):
    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger(NAME)
    yield logger
    logger.handlers.clear()
    logger.setLevel(logging.NOTSET)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Hide the handlers of the tests themselves, which pytest adds just before a test begins."""
    return lambda: monkeypatch.setattr(logging.root, "handlers", [])


def test_messages_are_handled_between_attach_and_detach(logger: logging.Logger) -> None:
    handler = Keep()
    logger.error("before")
    handler.attach(NAME, logging.INFO)
    logger.info("one")
    logger.debug("too low")
    handler.detach()
    logger.error("after")
    handler.detach()  # A second time changes nothing.
    assert handler.messages == ["one"]
    assert (logger.level, logger.handlers) == (logging.NOTSET, [])


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_level_is_restored_in_any_order(logger: logging.Logger, order: tuple[int, ...]) -> None:
    logger.setLevel(logging.ERROR)
    levels = (logging.WARNING, logging.DEBUG, logging.INFO)
    handlers = [Keep() for _ in levels]
    for handler, level in zip(handlers, levels, strict=True):
        handler.attach(NAME, level)
    assert logger.level == logging.DEBUG
    assert temporary_handlers(logger) == handlers
    left = list(levels)
    for index in order:
        handlers[index].detach()
        left.remove(levels[index])
        assert logger.level == min(left, default=logging.ERROR)


def test_a_more_talkative_logger_stays_as_it_is(logger: logging.Logger) -> None:
    logger.setLevel(logging.DEBUG)
    handler = Keep()
    handler.attach(NAME, logging.WARNING)
    assert logger.level == logging.DEBUG
    handler.detach()
    assert logger.level == logging.DEBUG


def test_only_handlers_of_the_program_are_its_own(
    logger: logging.Logger, alone: Callable[[], None]
) -> None:
    alone()
    Keep().attach(NAME, logging.INFO)
    assert not has_own_handlers(logger)
    logger.addHandler(logging.NullHandler())
    assert has_own_handlers(logger)


def test_handlers_of_parents_count_as_far_as_messages_go(
    logger: logging.Logger, alone: Callable[[], None]
) -> None:
    alone()
    child = logger.getChild("child")
    logger.addHandler(logging.NullHandler())
    assert has_own_handlers(child)
    child.propagate = False
    assert not has_own_handlers(child)
    child.propagate = True


@pytest.mark.parametrize(
    ("stream", "level", "expected"),
    [
        (None, logging.INFO, True),
        (None, logging.ERROR, False),
        (io.StringIO(), logging.INFO, False),
    ],
)
def test_a_message_is_on_the_screen_if_a_handler_writes_it_there(
    logger: logging.Logger,
    alone: Callable[[], None],
    stream: io.StringIO | None,
    level: int,
    expected: bool,
) -> None:
    alone()
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setLevel(level)
    logger.addHandler(handler)
    record = logger.makeRecord(NAME, logging.WARNING, __file__, 1, "x", (), None)
    assert is_on_screen(record) is expected
