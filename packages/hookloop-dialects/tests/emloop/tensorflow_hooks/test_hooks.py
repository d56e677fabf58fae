"""The stand-in for ``emloop_tensorflow``."""

from hookloop import dialects
from hookloop_dialects.emloop.hooks import WriteTensorBoard


def test_files_import_the_hook_under_both_spellings_and_from_the_older_package():
    with dialects.alias("emloop"):
        from cxflow_tensorflow.hooks import WriteTensorBoard as older
        from emloop_tensorflow.hooks import WriteTensorBoard as real
        from emloop_tensorflow.hooks import WriteTensorboard as tutorial
    assert real is tutorial is older is WriteTensorBoard
