"""Small files on the local disk."""

import pytest

from hookloop import dialects
from hookloop_mmengine import fileio


@pytest.mark.parametrize("name", ["a.json", "a.yaml", "a.yml"])
def test_what_is_written_is_read_again(tmp_path, name):
    content = {"a": [1, 2.5, None, "x"], "b": {"c": True}}
    assert fileio.dump(content, tmp_path / name) is None
    assert fileio.load(tmp_path / name) == content


def test_a_format_can_be_given(tmp_path):
    fileio.dump({"a": 1}, tmp_path / "a.txt", file_format="json")
    assert fileio.load(tmp_path / "a.txt", file_format="json") == {"a": 1}
    assert fileio.dump({"a": 1}, file_format="json") == '{"a": 1}'
    with pytest.raises(ValueError, match="file_format must be specified since file is None"):
        fileio.dump({})


@pytest.mark.parametrize("name", ["a.pth", "a.txt", "a"])
def test_other_formats_are_rejected_before_anything_is_read(tmp_path, name):
    with pytest.raises(TypeError, match="Unsupported format.*Use one of json, yaml"):
        fileio.load(tmp_path / name)
    with pytest.raises(TypeError, match="Unsupported format"):
        fileio.dump({}, tmp_path / name)
    assert not (tmp_path / name).exists()


def test_bytes_and_text_make_their_directories(tmp_path):
    path = tmp_path / "new" / "deep" / "file.txt"
    fileio.put_text("gr\u00fcn", path)
    assert fileio.get(path, backend_args=None) == "gr\u00fcn".encode()
    assert fileio.get_text(path) == "gr\u00fcn"
    fileio.put(b"\x00\xff", path)
    assert fileio.get(path, backend_args={"backend": "local"}) == b"\x00\xff"


def test_paths_are_joined_and_looked_up(tmp_path):
    (tmp_path / "a.txt").touch()
    assert fileio.join_path(tmp_path, "a", "b") == str(tmp_path / "a" / "b")
    assert fileio.exists(tmp_path)
    assert fileio.isdir(tmp_path)
    assert not fileio.isfile(tmp_path)
    assert fileio.isfile(tmp_path / "a.txt")
    assert not fileio.exists(tmp_path / "b.txt")


@pytest.mark.parametrize(
    "use",
    [
        lambda path: fileio.get(path, backend_args={"backend": "petrel"}),
        lambda path: fileio.get_text(path, backend_args={"backend": "petrel"}),
        lambda path: fileio.put(b"", path, backend_args={"backend": "petrel"}),
        lambda path: fileio.put_text("", path, backend_args={"backend": "petrel"}),
        lambda path: fileio.FileClient(backend="petrel"),
        lambda path: fileio.FileClient.infer_client({"backend": "petrel"}),
    ],
)
def test_other_backends_are_rejected_with_a_way_out(tmp_path, use):
    with pytest.raises(ValueError, match="'petrel' is not offered.*fsspec"):
        use(tmp_path / "file")


def test_the_older_client_does_the_same(tmp_path):
    with dialects.alias("mmengine"):
        from mmengine import FileClient
    client = FileClient.infer_client(None, str(tmp_path))
    path = client.join_path(str(tmp_path), "a.txt")
    client.put_text("hello", path)
    assert client.get(path) == b"hello"
    assert client.get_text(path) == "hello"
    assert client.isfile(path)
    assert client.exists(path)
    assert client.isdir(str(tmp_path))
    assert FileClient("disk").name == "HardDiskBackend"


def test_a_file_is_a_path_or_open(tmp_path):
    for use in (fileio.load, lambda file: fileio.dump({}, file)):
        with pytest.raises(TypeError, match='"file" must be a filepath str or a file-object'):
            use(3)
    with pytest.raises(ValueError, match="uri should not be None"):
        fileio.get_file_backend()


def test_an_object_that_does_not_fit_leaves_the_file_as_it_was(tmp_path):
    fileio.dump({"a": 1}, tmp_path / "a.json")
    with pytest.raises(TypeError, match="unsupported for json"):
        fileio.dump([1, object()], tmp_path / "a.json")
    assert fileio.load(tmp_path / "a.json") == {"a": 1}
