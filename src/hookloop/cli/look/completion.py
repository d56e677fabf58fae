"""``hookloop completion``: print the script that teaches a shell to complete our commands."""

from __future__ import annotations

import click
from click.shell_completion import (
    BashComplete,
    ShellComplete,
    add_completion_class,
    get_completion_class,
)

from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import reporting

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_HOOKLOOP_COMPLETE"

NO_SPACE = """
    # A key is followed by its value, and a part by its keys: no space after them.
    [[ "${COMPREPLY[*]}" == *[=.] ]] && compopt -o nospace

    return 0
"""


class Bash(BashComplete):
    """click's completion, without a space after ``optimizer.lr=``."""

    source_template = BashComplete.source_template.replace("\n    return 0\n", NO_SPACE)


@click.command("completion", short_help="Print the script for completion in a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
@reporting
def command(shell: str) -> int:
    """Print the script with which SHELL completes commands, options, config keys and hooks.

    \b
    bash:  hookloop completion bash > ~/.local/share/bash-completion/completions/hookloop
    zsh:   hookloop completion zsh > ~/.zfunc/_hookloop     (with ~/.zfunc in fpath)
    fish:  hookloop completion fish > ~/.config/fish/completions/hookloop.fish
    """  # noqa: D301 - click keeps the lines after \b as they are
    from hookloop.cli.main import cli

    add_completion_class(Bash)
    made: type[ShellComplete] | None = get_completion_class(shell)
    if made is not None:  # It is one of SHELLS.
        script = made(cli, {}, "hookloop", VARIABLE).source()
        set_result({"shell": shell, "script": script})
        click.echo(script)
    return 0
