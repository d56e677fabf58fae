"""The state of a run: its parts, listed once."""
