"""Checkpoints: what they hold and where they are kept. Knows nothing of hooks."""
