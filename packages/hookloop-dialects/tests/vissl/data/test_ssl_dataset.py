"""Kinds of data that hooks ask for."""

from hookloop_dialects.vissl.data import AirstoreDataset, GenericSSLDataset


def test_hooks_can_ask_and_projects_can_derive():
    class Mine(GenericSSLDataset):
        def __getitem__(self, index):
            return index

    assert isinstance(Mine(), GenericSSLDataset) and not isinstance(Mine(), AirstoreDataset)
