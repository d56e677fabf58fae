from pathlib import Path

import pytest
from click.testing import CliRunner

import hookloop.hooks
from hookloop.cli.main import cli


def test_every_hook_is_listed_with_its_parameters() -> None:
    output = CliRunner().invoke(cli, ["hooks"]).output
    for name in hookloop.hooks.__all__:
        assert f"\n{name} " in output
    assert "epochs=None, iterations=None, minutes=None" in output


def test_one_hook_is_described_in_full() -> None:
    output = CliRunner().invoke(cli, ["hooks", "StopAfter"]).output
    assert output.startswith("StopAfter(epochs=None")
    assert "Args:" in output
    assert "acts at:   before_train, after_train_iter, after_train_epoch" in output


def test_a_hook_of_the_project_is_described_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "described_hook.py").write_text(
        "from hookloop import Hook\n"
        "class Mine(Hook):\n"
        '    """Do what only we do."""\n'
        "    reads = ('val/loss',)\n"
        "    def after_val(self, run): ...\n"
    )
    output = CliRunner().invoke(cli, ["hooks", "described_hook.Mine"]).output
    assert "Do what only we do." in output
    assert "acts at:   after_val\n" in output
    assert "reads:     val/loss" in output


def test_an_unknown_hook_is_rejected_with_the_nearest() -> None:
    result = CliRunner().invoke(cli, ["hooks", "StopAftr"])
    assert result.exit_code == 2
    assert result.stderr == "error: no hook is named 'StopAftr'. Did you mean 'StopAfter'?\n"
