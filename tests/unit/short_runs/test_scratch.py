"""What a command keeps for a while is removed, whatever ends the command."""

import json
import os
import signal
import tempfile
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Invoke

from hookloop.short_runs.scratch import Terminated, scratch_directory

SLOW = """

class Waiting:
    def __iter__(self):
        import os, signal
        os.kill(os.getpid(), signal.SIGTERM)
        return iter(batches())
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary directories are made."""
    home = tmp_path / "temporary"
    home.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(home))
    return home


def test_a_directory_is_removed_at_sigterm(folder: Path) -> None:
    def work() -> None:
        with scratch_directory("trial") as made:
            assert Path(made).parent == folder
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Terminated) as raised:
        work()
    assert raised.value.code == 143
    assert not list(folder.iterdir())
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_handler_of_someone_else_stays(folder: Path) -> None:
    received: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    try:
        with scratch_directory("trial"):
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert received == [signal.SIGTERM]


def test_a_forked_child_dies_of_the_signal_itself(folder: Path) -> None:
    with scratch_directory("trial") as made:
        child = os.fork()
        if child == 0:
            os.kill(os.getpid(), signal.SIGTERM)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.WTERMSIG(status) == signal.SIGTERM
        assert Path(made).is_dir()


@pytest.mark.parametrize("command", ["find-lr", "model"])
def test_a_command_that_sigterm_ends_says_so_and_leaves_nothing(
    project: Path, invoke: Invoke, folder: Path, command: str
) -> None:
    with (project / "cli_project.py").open("a") as module:
        module.write(SLOW)
    result = invoke(command, "config.yaml", "train_data=cli_project.Waiting", "--json")
    assert result.exit_code == 143, result.output
    assert json.loads(result.stdout)["error"] == "ended by SIGTERM"
    assert "error: ended by SIGTERM." in result.stderr
    assert not list(folder.glob("hookloop-*"))
