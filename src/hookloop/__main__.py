"""``python -m hookloop`` is the command ``hookloop``."""

from hookloop.cli.main import main

if __name__ == "__main__":
    main()
