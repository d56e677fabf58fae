"""Where emloop has `SequenceToCsv`."""

from __future__ import annotations

from hookloop.dialects.emloop.hooks.predictions_csv import SequenceToCsv

__all__ = ["SequenceToCsv"]
