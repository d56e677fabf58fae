"""What a GPU reports."""

import logging

from hookloop_dialects.vissl.utils import logger


def test_without_the_program_there_is_an_error_in_the_log(caplog, monkeypatch):
    monkeypatch.setenv("PATH", "")
    logger.log_gpu_stats()
    assert "nvidia-smi cannot be run" in caplog.text


def test_its_output_is_logged(caplog, monkeypatch, tmp_path):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho one GPU\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}")
    with caplog.at_level(logging.INFO, "vissl"):
        logger.log_gpu_stats()
    assert "one GPU" in caplog.text
