"""``hookloop completion``: the script for a shell, and the shell with it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Invoke

SCRIPT = """
eval "$(hookloop completion bash)"
COMP_WORDS=(hookloop train config.yaml optimizer.l) COMP_CWORD=3
compopt() { echo "compopt $1 $2"; }
_hookloop_completion hookloop
echo "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(invoke: Invoke, shell: str) -> None:
    result = invoke("completion", shell)
    assert result.exit_code == 0 and f"_HOOKLOOP_COMPLETE={shell}_complete" in result.stdout


def test_another_shell_is_rejected(invoke: Invoke) -> None:
    assert invoke("completion", "cmd").exit_code == 2


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_a_key_without_a_space_after_it(project: Path) -> None:
    program = project / "bin" / "hookloop"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m hookloop "$@"\n')
    program.chmod(0o755)
    path = os.pathsep.join([str(program.parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PATH": path},
    )
    assert done.stdout == "compopt -o nospace\noptimizer.lr=\n", done.stderr


def test_nothing_imports_torch(project: Path) -> None:
    code = (
        "import sys; from click.shell_completion import ShellComplete;"
        "from hookloop.cli.main import cli;"
        "made = ShellComplete(cli, {}, 'hookloop', 'X');"
        "print(len(made.get_completions(['train', 'config.yaml'], 'hooks.')));"
        "made.get_completions(['export'], '--'); made.get_completions(['trian'], 'c');"
        "assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and int(done.stdout) > 50, done.stderr
