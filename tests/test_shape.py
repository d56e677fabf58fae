"""The shape of the repository: layers, names, and documents that cannot drift from the code."""

import ast
import importlib
import importlib.util
import re
import subprocess
import tomllib
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

import hookloop.dialects
import hookloop.hooks
from hookloop.engine.points import POINTS

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "hookloop"
MODULES = sorted(SOURCE.rglob("*.py"))
CORE = sorted((SOURCE / "engine").glob("*.py"))
ENGINE = [*CORE, *(one for room in ("update", "trainer") for one in (SOURCE / room).rglob("*.py"))]


def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def test_no_module_is_a_drawer():
    drawers = {"utils", "util", "helpers", "common", "misc", "manager"}
    assert not [path for path in MODULES if path.stem in drawers]


@pytest.mark.parametrize(
    "package",
    ["hookloop", "hookloop.commands", "hookloop.hooks", "hookloop.writers", "hookloop.runs"],
)
def test_public_names_are_importable(package):  # That they are sorted, ruff holds.
    module = importlib.import_module(package)
    assert len(set(module.__all__)) == len(module.__all__)
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        # A submodule of the same name would take the place of a lazily imported one.
        assert not isinstance(getattr(module, name), ModuleType), name


def test_a_hook_stands_in_the_file_of_its_name():
    for name in hookloop.hooks.__all__:
        hook = getattr(hookloop.hooks, name)
        assert hook.__module__.rpartition(".")[2] == hook.name


# --- layers ---------------------------------------------------------------------------------------

IMPORTS_BY_NAME = {
    "config/locate.py": "what a config names",
    "parallel/fork_server.py": "modules that the ranks need, named by the launcher",
    "lazy.py": "public names, each from a table beside the imports that type checkers see",
    "writers/base.py": "optional packages",
}


def test_nothing_is_imported_by_its_name_to_get_around_the_layers():
    # A dialect looks up names of its own system. It is a plug-in, and may import every layer below.
    found = {
        str(path.relative_to(SOURCE))
        for path in MODULES
        if re.search(r"\b(import_module|__import__)\b", path.read_text(encoding="utf-8"))
        and not path.is_relative_to(SOURCE / "dialects")
    }
    assert found == set(IMPORTS_BY_NAME)


PUBLIC = {
    *("hookloop", "hookloop.commands", "hookloop.hooks", "hookloop.writers", "hookloop.runs"),
    *("hookloop.testing", "hookloop.errors", "hookloop.dialects"),
}


def test_the_documents_import_public_names_only():
    imports = [
        (path.name, package)
        for path in documents()
        for package in re.findall(
            r"^\s*(?:>>> )?from (hookloop[\w.]*) import", path.read_text(encoding="utf-8"), re.M
        )
    ]
    assert imports
    assert not [found for found in imports if found[1] not in PUBLIC]


def test_the_engine_knows_no_dialect_by_name():
    projects = [tomllib.loads(path.read_text()) for path in ROOT.glob("packages/*/pyproject.toml")]
    names = {
        name
        for project in projects
        for name in project["project"].get("entry-points", {}).get("hookloop.dialects", {})
    }
    assert len(names) == 7
    # Peers have their names in many tables of translations.
    known = re.compile("|".join(names - {"lightning", "transformers"}), re.IGNORECASE)
    outside = [path for path in MODULES if path != SOURCE / "beside.py"]
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in outside
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if known.search(line)
    ]
    assert not found, "a dialect is a plug-in, so only its own package may name it"


# --- mount points ------------------------------------------------------------------------------


def test_each_point_stands_once_in_the_table():
    (table,) = (
        node
        for node in tree_of(SOURCE / "engine" / "points.py").body
        if isinstance(node, ast.ClassDef) and node.name == "MountPoints"
    )
    rows = [node for node in table.body if isinstance(node, ast.Assign)]
    assert [row.targets[0].id for row in rows] == [point.name for point in POINTS]


def test_each_point_is_one_method_of_hook():
    methods = Counter(
        node.name
        for node in ast.walk(tree_of(SOURCE / "engine" / "hook.py"))
        if isinstance(node, ast.FunctionDef) and re.match("before_|after_|on_", node.name)
    )
    assert methods == Counter(point.name for point in POINTS)


def test_hook_methods_take_what_the_table_says():
    (hook,) = (
        node
        for node in tree_of(SOURCE / "engine" / "hook.py").body
        if isinstance(node, ast.ClassDef) and node.name == "Hook"
    )
    methods = {node.name: node for node in hook.body if isinstance(node, ast.FunctionDef)}
    for point in POINTS:
        given = [argument.arg for argument in methods[point.name].args.args]
        assert given == ["self", "run", *point.args]


def test_each_point_has_one_firing_site():
    names = {point.name for point in POINTS}
    sites = Counter(
        node.attr
        for path in ENGINE
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute)
        and node.attr in names
        and {getattr(node.value, "id", ""), getattr(node.value, "attr", "")} & {"plan", "_plan"}
    )
    assert sites == Counter(names)


OF_THE_GRAFT = {
    *(("graft/saving.py", name) for name in ("_iter", "_epoch")),
    # These are counters of MMEngine's own loop, and the loader that it shows to hooks.
    *(("graft/training.py", name) for name in ("_iter", "_epoch", "dataloader")),
    ("dialects/driven.py", "evaluation"),  # A runner of another system evaluates.
    # Its ranks are known when the loop is made already.
    ("trainer/several_ranks.py", "sync_points"),
}


def test_nobody_changes_a_loop_an_update_an_evaluation_or_a_stream_from_outside():
    parts = {"loop", "_loop", "update", "_update", "evaluation", "stream", "source", "train_data"}
    found = {
        (str(path.relative_to(source)), target.attr)
        for source in (SOURCE, *ROOT.glob("packages/*/src/*"))
        for path in source.rglob("*.py")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign)
        for goal in (node.targets if isinstance(node, ast.Assign) else [node.target])
        for target in ast.walk(goal)
        if isinstance(target, ast.Attribute)
        and isinstance(target.ctx, ast.Store)
        and (getattr(target.value, "attr", None) or getattr(target.value, "id", None)) in parts
    }
    assert found == OF_THE_GRAFT


# --- documents ---------------------------------------------------------------------------------


def generated_pages():
    spec = importlib.util.spec_from_file_location("make_docs", ROOT / "scripts" / "make_docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return dict(module.pages())


TRACED = "from-request-to-return.md"


def test_generated_pages_are_the_committed_ones():
    for path, content in generated_pages().items():
        if path.name != TRACED:
            assert path.read_text(encoding="utf-8") == content, f"{path.name}: run 'make pages'"


def test_the_traced_page_names_functions_that_exist():
    # Which calls a trace has, and where, depends on how far the thread is that writes a checkpoint.
    page = (ROOT / "docs" / "concepts" / TRACED).read_text(encoding="utf-8")
    named = set(re.findall(r"([\w/]+\.py): (?:[\w.]+\.)?(?:<locals>\.)?(\w+)", page))
    assert len(named) > 30
    for file, function in named:
        assert f"def {function}(" in (ROOT / "src" / "hookloop" / file).read_text(
            encoding="utf-8"
        ), (file, function)


def test_every_point_is_documented():
    page = (ROOT / "docs" / "mount-points.md").read_text(encoding="utf-8")
    for point in POINTS:
        assert f"| `{point.name}" in page
        assert point.doc


def documents():
    folders = ["docs", "examples", "packages"]
    found = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.md"))]
    return [*sorted(ROOT.glob("*.md")), *(one for one in found if "node_modules" not in one.parts)]


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (path.parent / target).exists(), f"{path.name} links {target}"


def test_every_name_of_the_kit_is_on_its_page():
    page = (ROOT / "docs" / "kit.md").read_text(encoding="utf-8")
    assert not [name for name in hookloop.dialects.__all__ if f"`{name}`" not in page]


# --- the whole repository ------------------------------------------------------------------------

# Spelled apart, so that this file does not contain what it forbids.
BANNED = ["/wo" + "rk/", "/ro" + "ot/", "/ho" + "me/", "--index" + "-url"]
BANNED_IN_TEXT = [
    "/t" + "mp/"
]  # A recorded checkpoint may hold the temporary place it was made in.


def tracked_files():
    git = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(git, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return [ROOT / name for name in listed.split("\0") if name]


def test_no_file_names_a_machine():
    found = []
    for path in tracked_files():
        if not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="ignore")
        banned = BANNED if "\0" in text else BANNED + BANNED_IN_TEXT
        found += [f"{path.relative_to(ROOT)}: {word}" for word in banned if word in text]
    assert not found
