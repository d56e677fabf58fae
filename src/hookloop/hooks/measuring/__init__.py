"""Hooks that measure a run: times, norms, memory, the machine."""
