"""`SequenceToCsv` in the module where emloop has it."""

from hookloop import dialects


def test_files_import_it_from_there():
    with dialects.alias("emloop"):
        from emloop.hooks import SequenceToCsv
        from emloop.hooks.sequence_to_csv import SequenceToCsv as same
    assert same is SequenceToCsv
