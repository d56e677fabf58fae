"""The project of the tests of configs, for those of configs with foreign hooks."""

from tests.unit.config.conftest import project, write

__all__ = ["project", "write"]
