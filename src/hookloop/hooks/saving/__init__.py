"""Hooks that keep something of a run: checkpoints, files, the model."""
