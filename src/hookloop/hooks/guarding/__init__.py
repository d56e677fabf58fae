"""Hooks that guard a training against bad losses, updates and errors."""
