"""What hook files import from ``emloop.datasets``."""

from hookloop import dialects


def test_annotations_of_hook_files_find_both_classes():
    with dialects.alias("emloop"):
        from emloop.datasets import AbstractDataset, BaseDataset
    assert issubclass(BaseDataset, AbstractDataset)
    assert isinstance(BaseDataset(), AbstractDataset)
