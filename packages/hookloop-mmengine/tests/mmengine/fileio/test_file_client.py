"""The older interface to files."""

import pytest

from hookloop_mmengine.fileio import FileClient, HardDiskBackend, LocalBackend


class Own(LocalBackend):
    def __init__(self, size=1):
        self.size = size


@pytest.fixture
def own():
    FileClient.register_backend("own", Own, prefixes="own")
    yield
    del FileClient._backends["own"], FileClient._prefix_to_backends["own"]


def test_it_has_the_methods_of_its_backend(tmp_path):
    client = FileClient.infer_client(uri=tmp_path)
    assert isinstance(client.client, HardDiskBackend)
    client.put_text("a", tmp_path / "a.txt")
    with client.get_local_path(tmp_path / "a.txt") as path:
        assert client.get(path) == b"a"
    assert list(client.list_dir_or_file(tmp_path)) == ["a.txt"]
    assert client.allow_symlink
    assert not hasattr(client, "zebra")


def test_a_backend_of_a_project(own):
    assert FileClient("own", size=4).size == 4
    assert FileClient(prefix="own").name == "Own"
    assert FileClient.infer_client(uri="own://a").name == "Own"
    assert FileClient.infer_client({"backend": "own", "size": 2}).size == 2
    with pytest.raises(KeyError, match="already registered"):
        FileClient.register_backend("own", Own)
    assert FileClient.register_backend("own", force=True)(Own) is Own
    with pytest.raises(TypeError, match="is not a subclass"):
        FileClient.register_backend("other", dict)


def test_prefixes():
    assert FileClient.parse_uri_prefix("a/b") is None
    assert FileClient.parse_uri_prefix("cluster:s3://a") == "s3"
    with pytest.raises(ValueError, match="'s3' is not offered"):
        FileClient.infer_client(uri="s3://a")
    with pytest.raises(ValueError, match="Backend zebra is not supported"):
        FileClient("zebra")
    with pytest.raises(AssertionError, match="is needed"):
        FileClient.infer_client()
