"""The logger of iMIX."""

import logging

from hookloop_dialects.imix.utils.logger import setup_logger


def test_the_logger_passes_on_messages(monkeypatch):
    monkeypatch.setattr(logging.getLogger("imix"), "level", logging.WARNING)
    assert setup_logger("file.log", 0, name="imix") is logging.getLogger("imix")
    assert logging.getLogger("imix").isEnabledFor(logging.INFO)
