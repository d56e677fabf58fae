"""Informative messages of a run: on the screen, in its log, and in files."""

import errno
import io
import logging
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hookloop.errors import LinkError
from hookloop.runs.log import LogFile, OpenLog
from hookloop.runs.run_log import LOGGER, RunLog


@pytest.fixture
def log() -> Iterator[RunLog]:
    with closing(RunLog()) as log:
        yield log


@pytest.fixture
def logger() -> logging.Logger:
    return logging.getLogger(LOGGER)


def test_informative_messages_are_shown_until_it_is_closed(
    log: RunLog,
    logger: logging.Logger,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    # Those of pytest count as handlers of the program.
    monkeypatch.setattr(logging.root, "handlers", [])
    log.keep(tmp_path / "run.log")
    logger.info("before")
    with closing(OpenLog()):
        logger.info("lr 0.1")
        logger.warning("hot")
    logger.info("after")
    assert capsys.readouterr().out == "lr 0.1\n"
    lines = (tmp_path / "run.log").read_text().splitlines()
    assert [line.split("  ", 1)[1] for line in lines[1:]] == ["lr 0.1", "warning: hot"]


def test_a_program_that_set_up_logging_is_left_to_it(
    log: RunLog, logger: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    own = logging.StreamHandler(io.StringIO())
    logger.addHandler(own)
    try:
        with closing(OpenLog()):
            logger.info("lr 0.1")
    finally:
        logger.removeHandler(own)
    assert own.stream.getvalue() == "lr 0.1\n"
    assert capsys.readouterr().out == ""


def test_it_ends_with_the_run_if_its_owner_forgets_it(logger: logging.Logger) -> None:
    before = (logger.level, list(logger.handlers))
    with closing(RunLog()):
        OpenLog()
    assert (logger.level, logger.handlers) == before


def emit(handler: logging.Handler, text: str) -> None:
    handler.handle(logging.LogRecord("x", logging.INFO, __file__, 1, text, (), None))


def test_a_log_file_is_appended_to_or_begun_again(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_text("old\n")
    with closing(LogFile(file)) as handler:
        emit(handler, "new")
    assert file.read_text() == "old\nnew\n"
    with closing(LogFile(file, "w")) as handler:
        emit(handler, "newest")
    assert file.read_text() == "newest\n"


def test_a_delayed_file_is_made_with_the_first_message(tmp_path: Path) -> None:
    with closing(LogFile(tmp_path / "a.log", delay=True)) as handler:
        assert not (tmp_path / "a.log").exists()
        emit(handler, "x")
    assert (tmp_path / "a.log").read_text() == "x\n"


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine\n")
    (tmp_path / "a.log").symlink_to(target)
    with pytest.raises(LinkError):
        LogFile(tmp_path / "a.log")
    with closing(LogFile(tmp_path / "a.log", "w")) as handler:
        emit(handler, "x")  # The link was replaced by a file.
    assert target.read_text() == "mine\n"


class Full(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_reported_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(LogFile(tmp_path / "a.log")) as handler:
        handler.stream.close()
        handler.stream = Full()  # type: ignore[assignment]
        emit(handler, "one")
        emit(handler, "two")
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"warning: '{tmp_path / 'a.log'}' cannot be written: No space left on device."
