"""The command ``hookloop``: one file per verb, imported when it is used."""
