"""Hooks that change settings over time: learning rates and others."""
