"""Scripts for ``hookloop run`` and for the real packages; without these they cannot be imported."""

collect_ignore = ["tutorial.py"]
collect_ignore_glob = ["migration/*"]
