"""What hook files import from ``emloop.constants``."""

import logging

from hookloop.dialects.emloop import constants


def test_the_formats_format():
    record = logging.LogRecord("x", logging.INFO, "file.py", 1, "hello", (), None)
    formatter = logging.Formatter(constants.EL_LOG_FORMAT, constants.EL_LOG_DATE_FORMAT)
    assert formatter.format(record).endswith("INFO    @file        : hello")


def test_the_trace_has_the_name_of_the_constant(tmp_path):
    from hookloop.dialects.emloop.hooks import TrainingTrace

    TrainingTrace(output_dir=str(tmp_path)).save()
    assert [path.name for path in tmp_path.iterdir()] == [constants.EL_TRACE_FILE]
