"""The commands ``hookloop`` and ``python -m hookloop``."""

import signal


def main() -> None:
    """Run the command line; Ctrl-C shows no traceback of Python, even while it is imported."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # And not ignored, as in the background of a shell.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from hookloop.cli.main import main as run

    signal.signal(signal.SIGINT, before)
    run()


if __name__ == "__main__":
    main()
