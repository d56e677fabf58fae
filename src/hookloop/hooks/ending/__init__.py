"""Hooks that end a run, or answer those who ask it from outside."""
