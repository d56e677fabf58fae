"""Batches: where they come from, how they are moved, what they hold."""
