"""What a command of another package is made of.

A package adds a command to ``hookloop`` with an entry point of the group ``hookloop.commands``. It
names a `click.Command`, which is imported when the command is used::

    [project.entry-points."hookloop.commands"]
    count = "my_package.command:command"
"""

from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_text, reporting

__all__ = ["print_text", "reporting", "set_result"]
