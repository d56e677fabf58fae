"""Modules named like the foreign ones, for files that import a package that is not installed."""
