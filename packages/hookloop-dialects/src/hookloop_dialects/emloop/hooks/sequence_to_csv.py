"""`SequenceToCsv`, in the module where emloop has it."""

from __future__ import annotations

from hookloop_dialects.emloop.hooks.predictions_csv import SequenceToCsv

__all__ = ["SequenceToCsv"]
