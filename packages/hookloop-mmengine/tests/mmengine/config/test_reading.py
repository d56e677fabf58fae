"""Config files with their bases, in every format and style."""

import sys

import pytest

from hookloop import dialects
from hookloop_mmengine.config import Config
from hookloop_mmengine.config.reading import Filling, import_customs, read_file


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


def test_bases_of_the_newer_style_are_read(tmp_path, write):
    write("base.py", "a = dict(b=1, c=2)\n")
    new = write(
        "new.py",
        "from mmengine.config import read_base\n"
        "with read_base():\n    from .base import *\n"
        "a.update(dict(b=3))\n",
    )
    with dialects.alias("mmengine"):
        assert Config.fromfile(new).a == {"b": 3, "c": 2}


def test_a_base_of_the_newer_style_may_be_in_a_parent_directory(write):
    write("shared/base.py", "a = 1\n")
    new = write(
        "one/new.py",
        "from mmengine.config import read_base\n"
        "with read_base():\n    from ..shared.base import *\nb = a + 1\n",
    )
    with dialects.alias("mmengine"):
        assert read_file(new) == {"a": 1, "b": 2}


def test_a_child_replaces_refers_to_and_deletes_entries_of_its_base(write):
    write("base.py", "a = dict(b=1, c=2)\nd = dict(e=1)\nlr = 0.1\n")
    child = write(
        "child.py",
        "_base_ = ['base.py']\na = dict(c=3)\nd = dict(_delete_=True, f=2)\n"
        "twice = 2 * _base_.lr\nsame = {{_base_.a.b}}\n",
    )
    assert read_file(child) == {
        "a": {"b": 1, "c": 3}, "d": {"f": 2}, "lr": 0.1, "twice": 0.2, "same": 1,
    }  # fmt: skip


@pytest.mark.parametrize("bases", ["'a.py'", "['a.py']", "['a.py', 'b.yaml', 'sub/c.json']"])
def test_bases_are_a_name_or_several_in_any_format(write, bases):
    write("a.py", "a = 1\n")
    write("b.yaml", "b: 2\n")
    write("sub/c.json", '{"c": 3}')
    found = read_file(write("child.py", f"_base_ = {bases}\nown = 0\n"))
    wanted = {"own": 0, "a": 1} | ({"b": 2, "c": 3} if "b.yaml" in bases else {})
    assert found == wanted


def test_yaml_and_json_have_bases_too(write):
    write("base.py", "a = dict(b=1, c=2)\n")
    assert read_file(write("child.yaml", "_base_: base.py\na: {c: 3}\n"))["a"] == {"b": 1, "c": 3}
    found = read_file(write("child.json", '{"_base_": ["child.yaml"], "a": {"b": 0}}'))
    assert found == {"a": {"b": 0, "c": 3}}


def test_two_bases_with_the_same_key_are_rejected(write):
    write("a.py", "lr = 1\n")
    write("b.py", "lr = 2\n")
    with pytest.raises(KeyError, match="Duplicate key is not allowed among bases.*lr"):
        read_file(write("child.py", "_base_ = ['a.py', 'b.py']\n"))


def test_imports_functions_and_classes_are_not_entries(write):
    path = write(
        "config.py",
        "import math\nfrom collections import OrderedDict\n"
        "def double(x):\n    return 2 * x\nclass Net: ...\nvalue = double(math.floor(1.5))\n",
    )
    assert read_file(path) == {"value": 2}


def test_predefined_variables_are_replaced(write, tmp_path):
    path = write(
        "config.py",
        "where = '{{ fileDirname }}'\nname = '{{fileBasename}}'\n"
        "stem = '{{ fileBasenameNoExtension }}'\nsuffix = '{{fileExtname}}'\n",
    )
    wanted = {"where": str(tmp_path), "name": "config.py", "stem": "config", "suffix": ".py"}
    assert read_file(path) == wanted
    assert (
        read_file(path, fill=Filling(predefined=False))["stem"] == "{{ fileBasenameNoExtension }}"
    )


def test_a_missing_file_is_named_with_the_nearest(write, tmp_path):
    write("config.py", "a = 1\n")
    with pytest.raises(FileNotFoundError, match="confg.py.*does not exist.*'config.py'"):
        read_file(tmp_path / "confg.py")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_file(tmp_path / "nowhere" / "config.py")


def test_another_format_is_rejected(write):
    with pytest.raises(OSError, match="Only py, yml, yaml and json are supported, not 'a.toml'"):
        read_file(write("a.toml", "a = 1\n"))


def test_an_error_in_a_config_names_the_file_and_line(write):
    path = write("config.py", "a = 1\nb = a.nothing\n")
    with pytest.raises(AttributeError) as caught:
        read_file(path)
    last = caught.traceback[-1]
    assert (str(last.path), last.lineno + 1) == (str(path), 2)


@pytest.fixture
def module(write, tmp_path, monkeypatch):
    write("toy_custom_module.py", "")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "toy_custom_module"
    sys.modules.pop("toy_custom_module", None)


@pytest.mark.parametrize("listed", [True, False])
def test_custom_modules_are_imported(module, listed):
    import_customs({"custom_imports": {"imports": [module] if listed else module}})
    assert module in sys.modules


def test_custom_modules_are_imported_when_a_file_is_read(module, write):
    path = write("config.py", f"custom_imports = dict(imports=['{module}'])\n")
    Config.fromfile(path, import_custom_modules=False)
    assert module not in sys.modules
    Config.fromfile(path)
    assert module in sys.modules


def test_a_custom_module_that_is_missing_is_an_error_unless_allowed():
    entry = {"imports": ["no_such_module_here"]}
    with pytest.raises(ImportError, match="no_such_module_here"):
        import_customs({"custom_imports": entry})
    import_customs({"custom_imports": {**entry, "allow_failed_imports": True}})
    import_customs({})


def test_variables_of_the_environment_are_replaced(tmp_path, monkeypatch):
    path = tmp_path / "config.py"
    path.write_text("root = '{{$DATA_ROOT:/data}}/images'\nclasses = {{'$CLASSES:80'}}\n")
    monkeypatch.delenv("DATA_ROOT", raising=False)
    monkeypatch.setenv("CLASSES", "7")
    assert read_file(path) == {"root": "/data/images", "classes": 7}
    path.write_text("root = '{{$DATA_ROOT:/data}}/images'\n")
    kept = Config.fromfile(path, use_environment_variables=False)
    assert kept.root == "{{$DATA_ROOT:/data}}/images"


def test_a_variable_that_is_missing_and_has_no_default_is_named(tmp_path):
    path = tmp_path / "config.py"
    path.write_text("root = '{{$NO_SUCH_ROOT:}}'\n")
    with pytest.raises(KeyError, match="NO_SUCH_ROOT"):
        read_file(path)
