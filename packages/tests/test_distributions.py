"""The distributions beside the engine: what each of them owes to it."""

import ast
import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from hookloop import beside, dialects, hooks
from hookloop.dialects import import_name
from hookloop.version import VERSION

PACKAGES = Path(__file__).parents[1]
PROJECTS = {
    path.parent.name: tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    for path in sorted(PACKAGES.glob("*/pyproject.toml"))
}
ENTRIES = {
    name: path
    for project in PROJECTS.values()
    for name, path in project.get("entry-points", {}).get("hookloop.dialects", {}).items()
}
BUILT_IN = {name: import_name(path) for name, path in ENTRIES.items()}
every_dialect = pytest.mark.parametrize("name", sorted(BUILT_IN))
every_catalogue = pytest.mark.parametrize(
    "name", [name for name, dialect in BUILT_IN.items() if dialect.catalogue()]
)
every_project = pytest.mark.parametrize("name", PROJECTS)

PUBLIC = {
    *("hookloop", "hookloop.hooks", "hookloop.writers", "hookloop.runs", "hookloop.testing"),
    *("hookloop.commands", "hookloop.errors", "hookloop.dialects"),
}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield node.module, [one.name for one in node.names]
        elif isinstance(node, ast.Import):
            yield from ((one.name, []) for one in node.names)


@every_project
def test_a_distribution_goes_with_its_engine(name):
    project, minor = PROJECTS[name], VERSION.rpartition(".")[0]
    assert project["version"] == VERSION
    assert f"hookloop=={minor}.*" in project["dependencies"]
    root = tomllib.loads((PACKAGES.parent / "pyproject.toml").read_text(encoding="utf-8"))
    extra = root["project"]["optional-dependencies"][name.removeprefix("hookloop-")]
    assert f"{name}=={minor}.*" in extra


@every_project
def test_it_imports_public_names_only(name):
    found = [
        (str(path.relative_to(PACKAGES)), module, one)
        for path in (PACKAGES / name / "src").rglob("*.py")
        for module, names in imports(path)
        if (module or "").partition(".")[0] == "hookloop"
        for one in (names or [""])
        if module not in PUBLIC
        or (f"{module}.{one}" not in PUBLIC and one not in importlib.import_module(module).__all__)
    ]
    assert not found


def test_what_a_dialect_is_made_of_is_public():
    for name in dialects.__all__:
        assert getattr(dialects, name) is not None
    assert sorted(dialects.__all__) == sorted(dir(dialects))


def test_every_dialect_is_found():
    assert BUILT_IN.items() <= dict(dialects.installed()).items()


@every_dialect
def test_a_base_class_is_recognised_in_the_foreign_package_and_in_ours(name):
    dialect = BUILT_IN[name]
    ours = {base for package, base in dialect.bases if package.startswith("hookloop_")}
    theirs = {base for package, base in dialect.bases if not package.startswith("hookloop_")}
    assert ours == theirs


@every_dialect
def test_the_packages_of_an_alias_can_be_imported(name):
    for foreign, ours in BUILT_IN[name].packages.items():
        assert "." not in foreign
        assert __import__(ours, fromlist=["__doc__"]).__name__ == ours


@every_catalogue
def test_every_row_of_a_catalogue_leads_to_a_class(name):
    rows = BUILT_IN[name].catalogue()
    assert rows
    for row, path in rows.items():
        kind = import_name(path)
        assert isinstance(kind, type)
        assert kind.__name__.lower() == row.rpartition(".")[2].lower()


@every_catalogue
def test_a_hook_of_the_foreign_package_is_adapted(name):
    package, base = BUILT_IN[name].bases[0]
    foreign = type("Mine", (type(base, (), {"__module__": f"{package}.hooks"}),), {})()
    assert dialects.dialect_of(foreign) is BUILT_IN[name]
    (adapted,) = BUILT_IN[name].adapt(foreign)
    assert adapted.foreign is foreign


@pytest.mark.slow
def test_no_package_of_a_dialect_is_imported_before_a_hook_needs_it():
    script = (
        "import sys, hookloop.dialects as dialects; dialects.installed();"
        "found = {name for name in sys.modules if name.startswith('hookloop_')};"
        "print(*sorted(name for name in found if name.count('.') > 0))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) == {
        *("hookloop_callbacks.dialects", "hookloop_dialects.dialects", "hookloop_mmengine.dialect"),
        *("hookloop_mmengine.missing", "hookloop_mmengine.version"),  # Of the package itself.
    }


def test_the_engine_names_what_to_install():
    for name, project in PROJECTS.items():
        for dialect in project.get("entry-points", {}).get("hookloop.dialects", {}):
            assert beside.EXTRAS[dialect] == name.removeprefix("hookloop-")
    assert set(beside.EXTRAS) == set(BUILT_IN)
    for name, dialect in BUILT_IN.items():
        own = {hook for hook in dialect.catalogue() if "." not in hook} - {*hooks.__all__}
        assert set(beside.HOOKS.get(name, "").split()) == own
        assert set(beside.PACKAGES[name].split()) == set(dialect.packages)
        assert {key for key, owners in beside.KEYS.items() if name in owners} == set(dialect.keys)
