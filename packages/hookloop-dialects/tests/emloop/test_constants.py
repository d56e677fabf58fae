"""What hook files import from ``emloop.constants``."""

import logging

import pytest

from hookloop import dialects
from hookloop_dialects.emloop import AbstractHook, constants


def test_the_formats_format():
    record = logging.LogRecord("x", logging.INFO, "file.py", 1, "hello", (), None)
    formatter = logging.Formatter(constants.EL_LOG_FORMAT, constants.EL_LOG_DATE_FORMAT)
    assert formatter.format(record).endswith("INFO    @file        : hello")


def test_the_trace_has_the_name_of_the_constant(tmp_path):
    from hookloop_dialects.emloop.hooks import TrainingTrace

    TrainingTrace(output_dir=str(tmp_path)).save()
    assert [path.name for path in tmp_path.iterdir()] == [constants.EL_TRACE_FILE]


def test_constants_have_the_names_of_cxflow_too():
    with dialects.alias("emloop"):
        from cxflow.constants import CXF_DEFAULT_TRAIN_STREAM
        from cxflow.hooks import AbstractHook as Older
    assert CXF_DEFAULT_TRAIN_STREAM == "train"
    assert Older is AbstractHook
    with pytest.raises(AttributeError, match="CXF_NO_SUCH"):
        constants.CXF_NO_SUCH  # noqa: B018 - the access is what is tested
