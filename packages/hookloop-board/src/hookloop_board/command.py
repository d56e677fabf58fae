"""``hookloop board``: a local web page of runs."""

from __future__ import annotations

import os
import socket
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookloop import HookloopError
from hookloop.commands import print_text, reporting, set_result

if TYPE_CHECKING:
    from hookloop_board.access import Access

TOKEN = "HOOKLOOP_BOARD_TOKEN"
LEAST_TOKEN = 8


@click.command(
    "board",
    short_help="Show runs, live and compared, on a local web page.",
    epilog=(
        "\b\nExamples:\n  hookloop board runs --open\n  hookloop board runs --export page.html"
    ),
)
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path), metavar="[RUNS]...")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; any but the loopback address needs a token.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Port to listen on; by default 6060, or the next free one.",
)
@click.option("--token", help=f"Ask for this token; also ${TOKEN}. Made if --host needs one.")
@click.option("--open", "opens", is_flag=True, help="Open the page in a browser.")
@click.option(
    "--export",
    "to",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="PAGE.html",
    help="Write the runs as one file that opens without a server, and exit.",
)
@reporting
def command(
    runs: tuple[Path, ...],
    host: str,
    port: int | None,
    token: str | None,
    opens: bool,
    to: Path | None,
) -> int:
    """Serve a web page of RUNS, which are runs or directories of runs; by default runs/.

    Nothing of a run is executed, and nothing is sent anywhere. The page is for this machine alone;
    with another --host, it asks for a token. Ctrl-C ends it.
    """
    from hookloop_board.page import built_page

    roots = list(runs) or [Path("runs")]
    if missing := [str(one) for one in roots if not one.is_dir() and (runs or to)]:
        raise click.BadParameter(f"there is no directory '{missing[0]}'.", param_hint="RUNS")
    page = built_page()
    if to is not None:
        return _export(roots, page, to)
    from hookloop_board.serve import listen, serve

    with listen(host, port) as listening:
        access = _access(host, listening, token)
        if not roots[0].is_dir():
            print_text(f"There is no '{roots[0]}' yet: its runs are shown as soon as they appear.")
        serve(roots, page, listening, access, lambda: _tell(access, opens=opens))
    return 0


def _access(host: str, listening: socket.socket, token: str | None) -> Access:
    from hookloop_board.access import Access, is_loopback
    from hookloop_board.serve import new_token

    given = token if token is not None else os.environ.get(TOKEN)
    if given is not None and (len(given) < LEAST_TOKEN or not given.isascii()):
        raise HookloopError(f"A token has at least {LEAST_TOKEN} characters, all of them ASCII.")
    if given is None and not is_loopback(host):
        given = new_token()
    return Access(host, listening.getsockname()[1], given)


def _tell(access: Access, *, opens: bool) -> None:
    from hookloop_board.access import is_loopback
    from hookloop_board.serve import address_of

    address = address_of(access.host, access.port, access.token)
    set_result({"address": address, "host": access.host, "port": access.port})
    # On its own line and at once: programs that start the board wait for it.
    click.echo(f"The board is at {address}  (Ctrl-C ends it)")
    if "SSH_CONNECTION" in os.environ and is_loopback(access.host):
        print_text(
            f"Over ssh, write on your own machine: ssh -L {access.port}:localhost:{access.port} "
            f"{socket.gethostname()}   and open the address there."
        )
    if opens and not webbrowser.open(address):
        print_text("No browser could be started: open the address yourself.", err=True)


def _export(roots: list[Path], page: Path, to: Path) -> int:
    from hookloop_board.export import export_page

    count, size = export_page(roots, page, to)
    set_result({"file": str(to), "runs": count, "bytes": size})
    print_text(f"{to}: {count} {'run' if count == 1 else 'runs'}, {size / 1e6:.1f} MB")
    return 0
