import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from hookloop.cli.main import VERBS, cli


def test_help_lists_every_verb_in_the_order_of_use() -> None:
    output = CliRunner().invoke(cli, ["--help"]).output
    places = [output.index(f"\n  {verb} ") for verb in VERBS]
    assert places == sorted(places)


def test_every_verb_has_a_help_of_its_own() -> None:
    for verb in VERBS:
        result = CliRunner().invoke(cli, [verb, "--help"])
        assert result.exit_code == 0
        assert "--traceback" in result.output


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from hookloop.cli.main import cli\n"
        "cli.main(['--help'], standalone_mode=False)\n"
        "heavy = {'torch', 'numpy', 'pydantic', 'rich', 'yaml'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_misspelled_verb_is_rejected_with_the_nearest() -> None:
    result = CliRunner().invoke(cli, ["trian", "x.yaml"])
    assert result.exit_code == 2
    assert "There is no command 'trian'. Did you mean 'train'?" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "x.yaml"], "There is no command 'fit'. Did you mean 'train'?"),
        (["evaluate", "x.yaml"], "There is no command 'evaluate'. Did you mean 'validate'?"),
        (["train", "x.yaml", "--epochs", "3"], "changed with KEY=VALUE: max_epochs=..."),
        (["train", "x.yaml", "--lr", "3"], "changed with KEY=VALUE: optimizer.lr=..."),
        (["train", "x.yaml", "--max-epochs=3"], "changed with KEY=VALUE: max_epochs=..."),
        (["train", "--config", "x.yaml"], "The config is given without one: hookloop train"),
        (["train", "x.yaml", "-o", "a=1"], "changed with KEY=VALUE alone"),
        (["train", "x.yaml", "--zebra"], "No such option"),
    ],
)
def test_what_others_write_is_answered_with_ours(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.slow
def test_ctrl_c_while_the_commands_are_imported_shows_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = subprocess.run(
        [sys.executable, "-m", "hookloop", "ask", "run", "save"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        # A shell ignores SIGINT for what it starts in its background, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
