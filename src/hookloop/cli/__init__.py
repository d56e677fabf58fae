"""The command ``hookloop``: one verb per file, imported when it is used."""
