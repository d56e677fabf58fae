"""The script is for ``hookloop run``; without aliases or mmengine it cannot be imported."""

collect_ignore = ["tutorial.py"]
