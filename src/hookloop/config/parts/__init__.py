"""Objects that a config describes: resolved and checked, before any of them is built."""
