"""Hooks that change batches or the order of data."""
