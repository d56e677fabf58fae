"""The class of all data sets."""

from hookloop import dialects
from hookloop_dialects.emloop.datasets import AbstractDataset, BaseDataset


def test_hook_files_find_it_in_its_module():
    with dialects.alias("emloop"):
        from emloop.datasets.abstract_dataset import AbstractDataset as Found
    assert Found is AbstractDataset
    assert issubclass(BaseDataset, AbstractDataset)
    assert isinstance(AbstractDataset(""), Found)
