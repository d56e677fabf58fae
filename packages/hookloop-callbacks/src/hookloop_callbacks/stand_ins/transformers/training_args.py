"""The type of the argument ``args``."""

from __future__ import annotations

from hookloop_callbacks.on_transformers.arguments import ArgumentsView as TrainingArguments

__all__ = ["TrainingArguments"]
