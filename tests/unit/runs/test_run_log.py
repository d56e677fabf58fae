import contextvars
import io
import logging
import os
import re
import shutil
import sys
import threading
import warnings
from contextlib import closing, contextmanager

import pytest

from hookloop.runs.log import LogFile, OpenLog
from hookloop.runs.run_log import CURRENT, ELSEWHERE, RunLog, forward_logger

LOG = logging.getLogger("hookloop")


@contextmanager
def root_handlers(*handlers, level=logging.WARNING):
    """Set up logging as a program may have done it, without that of the tests."""
    before, level_before = logging.root.handlers, logging.root.level
    logging.root.handlers = list(handlers)
    logging.root.setLevel(level)
    try:
        yield
    finally:
        logging.root.handlers = before
        logging.root.setLevel(level_before)


@pytest.fixture
def log(tmp_path):
    with root_handlers(), closing(RunLog()) as log:
        log.keep(tmp_path / "run.log")
        yield log


def read(directory):
    return (directory / "run.log").read_text(encoding="utf-8")


def test_a_warning_is_on_the_standard_error_and_with_its_time_in_the_file(log, tmp_path, capsys):
    LOG.warning("the disk is %s", "full")
    assert capsys.readouterr().err == "warning: the disk is full\n"
    assert re.search(
        r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  warning: the disk is full$", read(tmp_path), re.M
    )


def test_what_is_reported_before_the_file_is_known_is_in_it(tmp_path, capsys):
    with root_handlers(), closing(RunLog()) as log:
        LOG.warning("early")
        log.keep(tmp_path / "run.log")
    assert "early" in read(tmp_path)


def test_a_run_without_a_directory_leaves_no_file(tmp_path, capsys):
    with root_handlers(), closing(RunLog()):
        LOG.warning("seen")
    assert "seen" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_codes_for_the_terminal_are_written_out(log, tmp_path, capsys):
    LOG.warning("name \x1b[31m")
    assert "\\x1b[31m" in read(tmp_path)
    assert "\x1b" not in read(tmp_path) + capsys.readouterr().err


def test_informative_lines_and_marked_ones_are_not_shown(log, tmp_path, capsys):
    with closing(OpenLog(screen=False)):
        LOG.info("an interval")
        LOG.error("known already", extra=ELSEWHERE)
    assert "an interval" in read(tmp_path)
    assert "known already" not in read(tmp_path)
    assert capsys.readouterr() == ("", "")


def test_warnings_of_python_are_in_the_file_and_where_they_were_before(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(warnings, "showwarning", lambda message, *_: seen.append(str(message)))
    with closing(RunLog()) as log, warnings.catch_warnings():
        log.keep(tmp_path / "run.log")
        warnings.simplefilter("always")
        warnings.warn("from torch", UserWarning, stacklevel=1)
    assert seen == ["from torch"]
    assert "UserWarning: from torch" in read(tmp_path)


def test_tests_catch_warnings_of_python_as_ever(log):
    with pytest.warns(UserWarning, match="from torch"):
        warnings.warn("from torch", UserWarning, stacklevel=1)


def test_nothing_is_left_behind_in_whatever_order_logs_are_closed(tmp_path):
    with root_handlers(level=logging.ERROR):
        before = (LOG.level, list(LOG.handlers), warnings.showwarning, CURRENT.get())
        first, second = RunLog(), RunLog()
        inner = OpenLog(logger="hookloop.part")
        assert LOG.isEnabledFor(logging.WARNING)
        first.close()
        assert LOG.isEnabledFor(logging.WARNING)
        second.close()
        assert (LOG.level, LOG.handlers, warnings.showwarning, CURRENT.get()) == before
        part = logging.getLogger("hookloop.part")
        assert (part.level, part.handlers) == (logging.NOTSET, [])
        inner.close()


def test_a_level_for_this_very_logger_is_respected(tmp_path, capsys):
    LOG.setLevel(logging.ERROR)
    with root_handlers(), closing(RunLog()) as log:
        log.keep(tmp_path / "run.log")
        LOG.warning("unwanted")
    assert "unwanted" not in capsys.readouterr().err + read(tmp_path)


@pytest.mark.parametrize("stream", ["stderr", "stdout"])
def test_nothing_is_shown_twice_where_the_program_shows_messages(tmp_path, capsys, stream):
    handler = logging.StreamHandler(getattr(sys, stream))
    with root_handlers(handler), closing(RunLog()) as log:
        log.keep(tmp_path / "run.log")
        LOG.warning("once")
    out, err = capsys.readouterr()
    assert (out + err).count("once") == 1
    assert read(tmp_path).count("once") == 1


def test_a_program_that_logs_to_a_file_still_sees_warnings(tmp_path, capsys):
    handler = logging.FileHandler(tmp_path / "program.log")
    with root_handlers(handler), closing(RunLog()):
        LOG.warning("both")
    handler.close()
    assert "both" in capsys.readouterr().err
    assert "both" in (tmp_path / "program.log").read_text()


def test_pytest_catches_messages_as_ever(tmp_path, caplog):
    with closing(RunLog()):
        LOG.warning("caught")
    assert [record.message for record in caplog.records] == ["caught"]


def test_runs_within_runs_and_in_threads_have_files_of_their_own(tmp_path, capsys):
    def train(name):
        with closing(RunLog()) as log:
            (tmp_path / name).mkdir()
            log.keep(tmp_path / name / "run.log")
            ready.wait(10)
            LOG.warning("of %s", name)
            helper = threading.Thread(
                target=contextvars.copy_context().run, args=(LOG.warning, "a thread of %s", name)
            )
            helper.start()
            helper.join()
            ready.wait(10)

    ready = threading.Barrier(2)
    with root_handlers():
        threads = [threading.Thread(target=train, args=(name,)) for name in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for name, other in ("ab", "ba"):
        text = read(tmp_path / name)
        assert f"of {name}" in text and f"a thread of {name}" in text
        assert f"of {other}" not in text
    assert capsys.readouterr().err.count("\n") == 4


def test_the_inner_run_has_its_messages_and_the_outer_one_the_next(log, tmp_path, capsys):
    (tmp_path / "in").mkdir()
    with closing(RunLog()) as inner:
        inner.keep(tmp_path / "in" / "run.log")
        LOG.warning("inside")
    LOG.warning("outside")
    assert "inside" not in read(tmp_path) and "outside" in read(tmp_path)
    assert "inside" in read(tmp_path / "in") and "outside" not in read(tmp_path / "in")
    assert capsys.readouterr().err == "warning: inside\nwarning: outside\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no full disk")
def test_a_full_disk_is_one_short_line_and_its_messages_come_later(log, tmp_path, capsys):
    with open("/dev/full", "ab", buffering=0) as disk:
        log._file.close()
        log._file = disk
        LOG.warning("first")
        LOG.warning("second")
    assert capsys.readouterr().err.splitlines() == [
        "warning: first",
        f"warning: '{tmp_path / 'run.log'}' cannot be written: No space left on device.",
        "warning: second",
    ]
    log._file = None
    LOG.warning("third")
    assert [line[21:] for line in read(tmp_path).splitlines()[1:]] == [
        "warning: first",
        "warning: second",
        "warning: third",
    ]


def test_a_directory_that_is_gone_is_reported_and_one_that_is_back_used(log, tmp_path, capsys):
    shutil.rmtree(tmp_path)
    LOG.warning("lost")
    assert "cannot be written: No such file" in capsys.readouterr().err
    tmp_path.mkdir()
    LOG.warning("found")
    assert "lost" in read(tmp_path) and "found" in read(tmp_path)


@pytest.mark.parametrize("stream", [None, "closed"])
def test_a_standard_error_that_is_closed_is_no_failure(log, tmp_path, monkeypatch, stream):
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed if stream else None)
    LOG.warning("unseen")
    assert "unseen" in read(tmp_path)


def test_what_was_reported_while_a_run_was_prepared_is_in_its_file(tmp_path, capsys):
    with root_handlers(), closing(RunLog()):
        LOG.warning("line 3 of the config")
        with closing(RunLog()) as log:
            log.keep(tmp_path / "run.log")
        with closing(RunLog()) as log:
            (tmp_path / "next").mkdir()
            log.keep(tmp_path / "next" / "run.log")
    assert read(tmp_path).count("line 3 of the config") == 1
    assert "line 3 of the config" not in read(tmp_path / "next")
    assert capsys.readouterr().err == "warning: line 3 of the config\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no full disk")
def test_a_log_of_a_dialect_on_a_full_disk_is_one_short_line(tmp_path, capsys):
    handler = LogFile(tmp_path / "program.log")
    handler.stream.close()
    handler.stream = open("/dev/full", "w", buffering=1)  # noqa: SIM115 - closed below
    with root_handlers(handler):
        logging.getLogger("mmengine").warning("first")
        logging.getLogger("mmengine").warning("second")
    with pytest.raises(OSError, match="No space"):
        handler.stream.close()
    assert capsys.readouterr().err.count("\n") == 1


def test_the_logger_of_a_dialect_can_belong_to_a_run(tmp_path, capsys):
    other = logging.getLogger("emloop")
    with root_handlers(), closing(RunLog()) as log:
        log.keep(tmp_path / "run.log")
        forward_logger("emloop")
        forward_logger("emloop")
        other.warning("no such variable")
    assert read(tmp_path).count("no such variable") == 1
    assert capsys.readouterr().err == "warning: no such variable\n"
    assert (other.level, other.handlers) == (logging.NOTSET, [])


def test_lines_of_another_logger_are_printed_and_logged(tmp_path, capsys):
    with root_handlers(), closing(RunLog()) as log:
        log.keep(tmp_path / "run.log")
        forward_logger("emloop")
        logging.getLogger("emloop").info("\tT train:\t1.5")
        log.close()
        logging.getLogger("emloop").info("after the run")
    assert capsys.readouterr().out == "\tT train:\t1.5\n"
    assert "T train" in read(tmp_path)


def test_of_the_root_logger_only_its_own_lines_are_shown(tmp_path, capsys):
    with root_handlers(), closing(RunLog()) as log:
        log.keep(tmp_path / "run.log")
        forward_logger("root")
        logging.info("EpochStopperHook triggered")
        library = logging.getLogger("some.library")
        library.info("details")
        library.warning("as Python shows it")
        LOG.warning("once")
        log.close()
        assert logging.root.level == logging.WARNING and not logging.root.handlers
    shown = capsys.readouterr()
    assert shown.out == "EpochStopperHook triggered\n"
    assert shown.err == "as Python shows it\nwarning: once\n"
    assert "triggered" in read(tmp_path) and "details" not in read(tmp_path)


def test_a_program_that_set_up_the_root_logger_keeps_its_level(tmp_path, capsys):
    kept = io.StringIO()
    with root_handlers(logging.StreamHandler(kept)), closing(RunLog()):
        forward_logger("root")
        logging.info("not wanted")
        logging.warning("wanted")
    assert kept.getvalue() == "wanted\n" and capsys.readouterr().out == ""


def test_the_handler_that_python_adds_does_not_hide_lines_or_show_them_again(tmp_path, capsys):
    with root_handlers(), closing(RunLog()) as log:
        log.keep(tmp_path / "run.log")
        logging.warning("before the run")  # Adds a handler to the root, at the level WARNING.
        (implicit,) = logging.root.handlers
        forward_logger("emloop")
        forward_logger("root")
        logging.info("of the root")
        logging.getLogger("emloop").info("of emloop")
        logging.getLogger("some.library").info("details")
        chatty = logging.getLogger("some.chatty.library")
        chatty.setLevel(logging.INFO)
        chatty.info("as without a run")
        chatty.setLevel(logging.NOTSET)
        logging.warning("careful")
        log.close()
        assert logging.root.handlers == [implicit] and not implicit.filters
        assert logging.root.level == logging.WARNING
    shown = capsys.readouterr()
    assert shown.out == "of the root\nof emloop\n"
    assert shown.err.splitlines() == [
        "WARNING:root:before the run",
        "INFO:some.chatty.library:as without a run",
        "WARNING:root:careful",
    ]
    assert all(line in read(tmp_path) for line in ("of the root", "of emloop", "careful"))
    assert "details" not in read(tmp_path)


def test_a_level_that_the_program_chose_with_basic_config_stays(capsys):
    with root_handlers(), closing(RunLog()):
        logging.basicConfig(level=logging.ERROR)
        forward_logger("root")
        logging.info("not wanted")
        logging.warning("not wanted")
        logging.error("wanted")
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err == "ERROR:root:wanted\n"


def test_lines_of_a_part_are_shown_once_beside_the_handler_that_python_adds(tmp_path, capsys):
    with root_handlers(), closing(RunLog()):
        logging.warning("before the run")
        forward_logger("imix")
        logging.getLogger("imix.engine").info("of a part")
    shown = capsys.readouterr()
    assert shown.out == "of a part\n" and shown.err == "WARNING:root:before the run\n"
