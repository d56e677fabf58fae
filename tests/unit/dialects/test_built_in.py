"""The dialects that come with hookloop."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from hookloop import dialects
from hookloop.dialects import built_in, import_name

ROOT = Path(__file__).parents[3]
BUILT_IN = {
    dialect.name: dialect
    for dialect in vars(built_in).values()
    if isinstance(dialect, dialects.Dialect)
}
every_dialect = pytest.mark.parametrize("name", sorted(BUILT_IN))


def test_the_entry_points_lead_to_them():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    entries = project["entry-points"]["hookloop.dialects"]
    assert {name: import_name(path) for name, path in entries.items()} == BUILT_IN
    assert BUILT_IN.items() <= dict(dialects.installed()).items()


@every_dialect
def test_a_base_class_is_recognised_in_the_foreign_package_and_in_ours(name):
    dialect = BUILT_IN[name]
    ours = f"hookloop.dialects.{name}"
    assert {base for package, base in dialect.bases if package == ours} == {
        base for package, base in dialect.bases if package != ours
    }


@every_dialect
def test_the_packages_of_an_alias_can_be_imported(name):
    for foreign, ours in BUILT_IN[name].packages.items():
        assert "." not in foreign
        assert __import__(ours, fromlist=["__doc__"]).__name__ == ours


@every_dialect
def test_every_row_of_a_catalogue_leads_to_a_class(name):
    rows = BUILT_IN[name].catalogue()
    assert rows
    for row, path in rows.items():
        kind = import_name(path)
        assert isinstance(kind, type)
        assert kind.__name__.lower() == row.rpartition(".")[2].lower()


@every_dialect
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
        "packages = tuple(f'hookloop.dialects.{name}' for name in dialects.installed());"
        "print([name for name in sys.modules if name.startswith(packages)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
