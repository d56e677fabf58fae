"""``hookloop config``: print the config that a training would use, and where each value is from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop.cli.shared.arguments import config_and_overrides
from hookloop.cli.shared.output import set_result
from hookloop.cli.shared.report import print_text, reporting

if TYPE_CHECKING:
    from hookloop.config.tree import Config, Key


@click.command("config", short_help="Print the effective config, and where its values are from.")
@config_and_overrides
@click.option("--sources", is_flag=True, help="Add the file and line of each value.")
@reporting
def command(config: Path, overrides: tuple[str, ...], sources: bool) -> int:
    """Print CONFIG as a training would use it: with its bases, overrides and references in place.

    Secrets and values from the environment stay references. A config with problems is rejected, as
    by 'hookloop check'; nothing is built.
    """
    from hookloop.config.load import load
    from hookloop.runs import plain_yaml

    loaded = load(config, overrides)
    from hookloop.config.blueprint import draw
    from hookloop.config.dump import as_read
    from hookloop.config.tree import spell

    draw(loaded)
    tree = as_read(loaded)
    places = {spell(key): _place(loaded, key) for key, _ in leaves(tree)}
    set_result({"config": tree, "sources": places} if sources else tree, as_it_is=not sources)
    if sources:
        print_text("\n".join(_lines(loaded, tree)))
    else:
        print_text(plain_yaml.dump(tree).rstrip("\n"))
    return 0


def leaves(value: object, key: Key = ()) -> Iterator[tuple[Key, object]]:
    """Yield the values of a tree that hold no others, with their keys.

    >>> list(leaves({"a": {"b": 1}, "c": []}))
    [(('a', 'b'), 1), (('c',), [])]
    """
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from leaves(item, (*key, name))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from leaves(item, (*key, index))
    else:
        yield key, value


def _place(config: Config, key: Key) -> str:
    from hookloop.config.tree import COMMAND_LINE, is_on_command_line

    where = config.where(key)
    # The mark of an override repeats its value, which is beside it already.
    return COMMAND_LINE if is_on_command_line(where) else where or ""


def _lines(config: Config, tree: dict[str, object]) -> list[str]:
    from hookloop.config.tree import spell
    from hookloop.runs.records import to_json

    rows = [
        (
            f"{spell(key)}: {value if isinstance(value, str) else to_json(value)}",
            _place(config, key),
        )
        for key, value in leaves(tree)
    ]
    width = min(60, max((len(text) for text, _ in rows), default=0))
    return [f"{text:<{width}}  # {where}" for text, where in rows]
