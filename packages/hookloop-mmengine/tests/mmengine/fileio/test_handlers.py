"""The formats of files."""

import io

import numpy as np
import pytest

from hookloop_mmengine import fileio
from hookloop_mmengine.fileio import handlers


def test_json_of_sets_and_arrays():
    value = {"a": {1}, "b": range(2), "c": np.arange(2), "d": np.float32(0.5)}
    assert (
        fileio.dump(value, file_format="json") == '{"a": [1], "b": [0, 1], "c": [0, 1], "d": 0.5}'
    )
    with pytest.raises(TypeError, match="<class 'object'> is unsupported for json dump"):
        fileio.dump(object(), file_format="json")


def test_options_reach_the_format(tmp_path):
    fileio.dump({"b": 1, "a": 2}, tmp_path / "a.json", indent=1, sort_keys=True)
    assert (tmp_path / "a.json").read_text() == '{\n "a": 2,\n "b": 1\n}'
    fileio.dump({"b": 1, "a": (2,)}, tmp_path / "a.yml", sort_keys=False)
    assert (tmp_path / "a.yml").read_text() == "b: 1\na:\n- 2\n"


def test_yaml_makes_no_objects(tmp_path):
    (tmp_path / "a.yaml").write_text("!!python/object/apply:os.getcwd []")
    with pytest.raises(Exception, match="could not determine a constructor"):
        fileio.load(tmp_path / "a.yaml")


@pytest.mark.parametrize("name", ["json", "yaml", "pkl"])
def test_a_handler_reads_and_writes_paths_and_files(tmp_path, name):
    handler = handlers.file_handlers[name]
    handler.dump_to_path({"a": 1}, tmp_path / "a")
    assert handler.load_from_path(tmp_path / "a") == {"a": 1}
    buffer = io.StringIO() if handler.str_like else io.BytesIO()
    fileio.dump({"a": 2}, buffer, file_format=name)
    buffer.seek(0)
    assert fileio.load(buffer, file_format=name) == {"a": 2}


def test_a_format_of_a_project(tmp_path):
    @fileio.register_handler("upper")
    class Upper(fileio.BaseFileHandler):
        def load_from_fileobj(self, file, **kwargs):
            return file.read().lower()

        def dump_to_fileobj(self, obj, file, **kwargs):
            file.write(self.dump_to_str(obj))

        def dump_to_str(self, obj, **kwargs):
            return obj.upper()

    try:
        fileio.dump("hello", tmp_path / "a.upper")
        assert (tmp_path / "a.upper").read_text() == "HELLO"
        assert fileio.load(tmp_path / "a.upper") == "hello"
    finally:
        del handlers.file_handlers["upper"]
    with pytest.raises(TypeError, match="must be a child of BaseFileHandler"):
        fileio.register_handler("x")(dict)
    with pytest.raises(TypeError, match="a str or a list of str"):
        fileio.register_handler([3])
