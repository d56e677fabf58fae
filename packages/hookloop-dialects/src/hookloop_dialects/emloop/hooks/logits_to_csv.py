"""`LogitsToCsv`, in the module where emloop has it."""

from __future__ import annotations

from hookloop_dialects.emloop.hooks.predictions_csv import LogitsToCsv

__all__ = ["LogitsToCsv"]
