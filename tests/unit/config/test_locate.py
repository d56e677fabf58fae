"""Import what a text names, and explain what cannot be imported."""

import collections
from collections.abc import Callable
from pathlib import Path

import pytest

from hookloop.config.locate import describe, load_module, locate
from hookloop.errors import ConfigError

Make = Callable[..., Path]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    monkeypatch.syspath_prepend(tmp_path)

    def write(name: str, text: str) -> Path:
        file = tmp_path / f"{name}.py"
        file.write_text(text)
        return file

    return write


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("collections.OrderedDict", collections.OrderedDict),
        ("collections:OrderedDict", collections.OrderedDict),
        ("collections:OrderedDict.fromkeys", collections.OrderedDict.fromkeys),
        ("collections.abc.Mapping", collections.abc.Mapping),
        ("collections.OrderedDict.fromkeys", collections.OrderedDict.fromkeys),
    ],
)
def test_a_path_leads_to_a_class_or_what_is_in_it(path: str, found: object) -> None:
    assert locate(path) == found


def test_entries_of_lists_and_mappings_have_paths_too(module: Make) -> None:
    module("held", "hooks = ['a', {'b': 3}]\nlosses = {1: 'one'}\n")
    assert locate("held:hooks.0") == "a"
    assert locate("held:hooks.1.b") == 3
    assert locate("held:losses.1") == "one"
    with pytest.raises(ConfigError, match="'held:hooks.2'.*'2'"):
        locate("held:hooks.2")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("collectoins.OrderedDict", "there is no module 'collectoins'. Did you mean 'collections'"),
        ("zebra.stripes:Zebra", "there is no module 'zebra.stripes'. Modules are looked for"),
        ("collections.OrderdDict", "the module 'collections' has no 'OrderdDict'. Did you mean"),
        ("collections:OrderedDict.fromkey", "the class 'OrderedDict' has no 'fromkey'. Did you"),
        ("collections.abc", "'collections.abc' is a module: name the class or function in it."),
    ],
)
def test_a_path_that_leads_nowhere_is_explained(path: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        locate(path)
    assert str(caught.value).startswith(message)


def test_a_module_that_fails_raises_its_own_error(module: Make) -> None:
    module("needs_missing", "import a_module_that_is_missing\n")
    module("fails", "raise RuntimeError('at import')\n")
    for path in ("needs_missing.Square", "needs_missing:Square"):
        with pytest.raises(ModuleNotFoundError, match="a_module_that_is_missing"):
            locate(path)
    with pytest.raises(RuntimeError, match="at import"):
        load_module("fails")


def test_an_exception_is_described_by_the_line_that_raised_it(module: Make) -> None:
    file = module("raises", "x = 1\n\n\nraise KeyError('lost')\n")
    with pytest.raises(KeyError) as caught:
        load_module("raises")
    assert describe(caught.value) == f"KeyError: 'lost' ({file}:4)"
    file = module("unreadable", "x = 1\nx = = 2\n")
    with pytest.raises(SyntaxError) as broken:
        load_module("unreadable")
    assert describe(broken.value) == f"SyntaxError: invalid syntax ({file}:2)"
    assert describe(ValueError("nowhere")) == "ValueError: nowhere"
