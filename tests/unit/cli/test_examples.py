"""The example at the end of each command's help."""

import click
from click.testing import CliRunner

from hookloop.cli.main import VERBS, cli
from hookloop.cli.shared.examples import EXAMPLES
from hookloop.cli.shared.plugged import OURS


def test_every_verb_has_an_example_whose_options_exist() -> None:
    assert set(EXAMPLES) == set(VERBS) - set(OURS)
    for verb, lines in EXAMPLES.items():
        output = CliRunner().invoke(cli, [verb, "--help"]).output
        for line in lines:
            assert f"\n    {line}\n" in output
            assert line.split()[:2] == ["hookloop", verb]
            command = cli.get_command(click.Context(cli), verb)
            assert command is not None
            options = {name for parameter in command.params for name in parameter.opts}
            assert {word for word in line.split() if word.startswith("--")} <= options
