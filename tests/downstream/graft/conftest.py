"""What every test of the graft runs under; ``make downstream`` has the real MMEngine."""

import pytest

collect_ignore: list[str] = []

mmengine = pytest.importorskip("mmengine", reason="only `make downstream` installs it")


@pytest.fixture(autouse=True)
def quick_passes(monkeypatch):
    """Do not sleep two seconds between passes, as MMEngine does."""
    import time

    monkeypatch.setattr(time, "sleep", lambda seconds: None)
