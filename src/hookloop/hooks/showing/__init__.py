"""Hooks that show a run to people: progress, lines, pictures, messages."""
