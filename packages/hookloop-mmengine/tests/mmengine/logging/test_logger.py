"""MMEngine's logger, and the function that prints through it."""

import logging

import pytest

from hookloop_mmengine.logging import MMLogger, print_log


@pytest.fixture(autouse=True)
def instances():
    before = dict(MMLogger._instance_dict)
    yield
    for name in set(MMLogger._instance_dict) - set(before):
        MMLogger._instance_dict.pop(name).close()


def test_messages_go_to_the_terminal_and_the_file(tmp_path, capsys):
    logger = MMLogger.get_instance("both", log_file=tmp_path / "logs" / "run.log")
    logger.info("a message of %d", 3)
    logger.close()
    text = (tmp_path / "logs" / "run.log").read_text()
    assert text.endswith(" - mmengine - INFO - a message of 3\n")
    assert capsys.readouterr().out.endswith("INFO - a message of 3\n")


def test_a_logger_that_says_nothing_leaves_no_file(tmp_path):
    MMLogger.get_instance("silent one", log_file=tmp_path / "run.log").close()
    assert list(tmp_path.iterdir()) == []


def test_a_closed_file_is_opened_again(tmp_path):
    logger = MMLogger.get_instance("reopened", log_file=tmp_path / "run.log")
    logger.info("one")
    logger.close()
    logger.info("two")
    logger.close()
    assert [line[-3:] for line in (tmp_path / "run.log").read_text().splitlines()] == ["one", "two"]


def test_messages_below_the_level_are_dropped(capsys):
    logger = MMLogger.get_instance("strict", log_level="ERROR")
    logger.warning("no")
    logger.error("yes")
    assert capsys.readouterr().out.count("\n") == 1


def test_it_is_found_by_its_name():
    logger = MMLogger.get_instance("found")
    assert MMLogger.get_instance("found") is logger
    assert MMLogger.get_current_instance() is logger
    assert (logger.instance_name, logger.name) == ("found", "mmengine")


def test_a_message_is_printed_without_a_logger(capsys):
    print_log("plain")
    assert capsys.readouterr().out == "plain\n"


def test_a_message_goes_to_the_logger_that_is_given(capsys, caplog):
    plain = logging.getLogger("hookloop.test_logger")
    print_log("to python", plain, level=logging.WARNING)
    assert caplog.record_tuples == [("hookloop.test_logger", logging.WARNING, "to python")]
    MMLogger.get_instance("target")
    print_log("by name", "target")
    print_log("to the current one", "current")
    out = capsys.readouterr().out
    assert "INFO - by name" in out
    assert "INFO - to the current one" in out


def test_a_message_can_be_silent(capsys):
    print_log("nothing", "silent")
    assert capsys.readouterr().out == ""


def test_an_unknown_logger_is_rejected():
    with pytest.raises(ValueError, match="MMLogger: unknown has not been created yet"):
        print_log("x", "unknown")
    with pytest.raises(TypeError, match="`logger` should be a logging.Logger.*<class 'int'>"):
        print_log("x", 5)


def test_another_level_holds_at_once(capsys):
    logger = MMLogger("levels")
    logger.info("first")
    logger.setLevel("ERROR")
    logger.info("second")
    logger.setLevel("INFO")
    logger.info("third")
    written = capsys.readouterr().out
    assert "first" in written
    assert "second" not in written
    assert "third" in written
