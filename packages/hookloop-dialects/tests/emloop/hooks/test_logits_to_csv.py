"""`LogitsToCsv` in the module where emloop has it."""

from hookloop import dialects


def test_files_import_it_from_there():
    with dialects.alias("emloop"):
        from emloop.hooks import LogitsToCsv
        from emloop.hooks.logits_to_csv import LogitsToCsv as same
    assert same is LogitsToCsv
