import importlib
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from hookloop.config.registry import HOOKS, Registry
from hookloop.errors import ConfigError, HookError


@pytest.fixture
def shapes() -> Registry[object]:
    return Registry("shape", "hookloop.shapes")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_a_class_is_found_by_its_own_name_or_a_given_one(shapes: Registry[object]) -> None:
    @shapes.register()
    class Square: ...

    @shapes.register("disc")
    class Circle: ...

    @shapes.register
    class Star: ...

    assert shapes.get("Square") is Square
    assert shapes.get("disc") is Circle
    assert shapes.get("Star") is Star
    assert shapes.names() == ["Square", "Star", "disc"]


def test_an_unknown_name_is_rejected_with_the_nearest(shapes: Registry[object]) -> None:
    shapes.register("Square")(object)
    with pytest.raises(ConfigError, match="'Sqare'.*'Square'"):
        shapes.get("Sqare")
    with pytest.raises(ConfigError, match=r"'package\.module:Zebra'"):
        shapes.get("Zebra")


def test_an_unknown_hook_is_a_hook_error() -> None:
    hooks: Registry[object] = Registry("hook", "hookloop.nothing")
    with pytest.raises(HookError, match="'Zebra'"):
        hooks.get("Zebra")


@pytest.mark.parametrize("name", ["AbstractHook", "ClassyHook", "Callback"])
def test_a_class_that_hooks_derive_from_is_answered_with_what_to_write(name: str) -> None:
    with pytest.raises(HookError, match="Hooks derive from that class.*'package.module:MyHook'"):
        HOOKS.get(name)


def test_two_classes_of_one_name_are_rejected_with_both_files(shapes: Registry[object]) -> None:
    class Outer:
        class Square: ...

    class Square: ...

    shapes.register(Square)
    with pytest.raises(ConfigError) as caught:
        shapes.register(Outer.Square)
    message = str(caught.value)
    assert "two shapes are registered as 'Square'" in message
    assert message.count("test_registry.py:") == 2
    assert shapes.get("Square") is Square


def test_a_reloaded_module_may_register_again(
    shapes: Registry[object], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "reloaded_shapes.py").write_text("class Square: ...\n")
    module = importlib.import_module("reloaded_shapes")
    shapes.register(module.Square)
    module = importlib.reload(module)
    shapes.register(module.Square)
    assert shapes.get("Square") is module.Square


@pytest.mark.parametrize("path", ["collections.OrderedDict", "collections:OrderedDict"])
def test_a_path_needs_no_registration(shapes: Registry[object], path: str) -> None:
    assert shapes.get(path).__name__ == "OrderedDict"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("collectoins.OrderedDict", "there is no module 'collectoins'. Did you mean 'collections'"),
        (
            "zebra.stripes:Zebra",
            "there is no module 'zebra.stripes'. Modules are looked for beside",
        ),
        (
            "collections.OrderdDict",
            "the module 'collections' has no 'OrderdDict'. Did you mean 'Or",
        ),
        ("collections.abcd.Mapping", "the module 'collections' has no 'abcd'. Did you mean 'abc'?"),
        ("collections.abc", "'collections.abc' is a module: name the class or function in it."),
        ("math.pi", "'math.pi' is not a shape: it is 3.14"),
    ],
)
def test_a_path_that_leads_nowhere_says_how_far_it_led(
    shapes: Registry[object], path: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        shapes.get(path)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("import a_module_that_is_missing\n", "ModuleNotFoundError: No module named"),
        ("x = 1\nraise RuntimeError('at import')\n", "RuntimeError: at import"),
        ("x = 1\nx = = 1\n", "SyntaxError: invalid syntax"),
    ],
)
def test_a_module_that_fails_to_import_shows_the_cause(
    shapes: Registry[object], project: Path, text: str, cause: str
) -> None:
    file = project / "broken_shapes.py"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        shapes.get("broken_shapes.Square")
    message = str(caught.value)
    assert message.startswith(f"shape 'broken_shapes.Square' could not be imported: {cause}")
    assert f"({file}:{len(text.splitlines())})" in message
    assert caught.value.__cause__ is not None


def test_installed_plugins_are_found_by_their_entry_point(
    shapes: Registry[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    point = metadata.EntryPoint("Ordered", "collections:OrderedDict", shapes.group)
    monkeypatch.setattr(
        metadata, "entry_points", lambda group: [point] if group == shapes.group else []
    )
    assert shapes.get("Ordered").__name__ == "OrderedDict"
    assert shapes.names() == ["Ordered"]


@pytest.mark.slow
def test_the_registries_are_imported_without_torch() -> None:
    code = "import sys, hookloop.config.registry; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_name_is_in_a_registry_without_being_imported(shapes: Registry[object]) -> None:
    shapes.register("Square")(dict)
    assert "Square" in shapes
    assert "Circle" not in shapes
    assert "collections.OrderedDict" not in shapes


def test_what_cannot_be_called_is_rejected_with_the_right_article() -> None:
    oaks: Registry[object] = Registry("oak", "hookloop.oaks", builtin=lambda: {"Big": 3})
    with pytest.raises(ConfigError, match="'Big'.*3"):
        oaks.get("Big")
