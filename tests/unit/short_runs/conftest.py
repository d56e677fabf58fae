"""The project of the command line's tests, for short runs of a config."""

from tests.unit.cli.conftest import invoke, project, warm_python

__all__ = ["invoke", "project", "warm_python"]
