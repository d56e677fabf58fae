"""A run on disk: its files, and how to read them. It needs neither torch nor the engine."""
