"""``hookloop run``: a script sees what ``python SCRIPT`` would show it."""

import sys
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Invoke


@pytest.fixture(autouse=True)
def _restore(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [*sys.argv])


def test_a_script_gets_its_arguments_and_its_neighbours(project: Path, invoke: Invoke) -> None:
    (project / "tool").mkdir()
    (project / "tool" / "run_neighbour.py").write_text("VALUE = 7\n")
    (project / "tool" / "script.py").write_text(
        "import sys\nfrom run_neighbour import VALUE\nprint(__name__, VALUE, sys.argv[1:])\n"
    )
    result = invoke("run", "tool/script.py", "--epochs", "3", "x")
    sys.modules.pop("run_neighbour")
    assert (result.exit_code, result.stdout) == (0, "__main__ 7 ['--epochs', '3', 'x']\n")


def test_the_error_of_a_script_is_shown_with_its_line(project: Path, invoke: Invoke) -> None:
    (project / "fails.py").write_text("x = 1\nraise ValueError('mine')\n")
    result = invoke("run", "fails.py")
    assert result.exit_code == 1
    assert "error: ValueError: mine\n  in fails.py:2" in result.stderr


def test_a_script_has_to_exist(invoke: Invoke) -> None:
    assert invoke("run", "none.py").exit_code == 2


def test_a_module_is_run_as_python_would(
    project: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (project / "run_package").mkdir()
    (project / "run_package" / "__init__.py").write_text("")
    (project / "run_package" / "values.py").write_text("VALUE = 7\n")
    (project / "run_package" / "tool.py").write_text(
        "import sys\nfrom pathlib import Path\nfrom .values import VALUE\n"
        "print(__name__, VALUE, Path(sys.argv[0]).name, sys.argv[1:])\n"
    )
    (project / "run_package" / "__main__.py").write_text("import run_broken_neighbour\n")
    result = invoke("run", "-m", "run_package.tool", "-m", "3")
    assert (result.exit_code, result.stdout) == (0, "__main__ 7 tool.py ['-m', '3']\n")
    failed = invoke("run", "-m", "run_package")
    assert failed.exit_code == 1 and "No module named 'run_broken_neighbour'" in failed.stderr
    for name in [name for name in sys.modules if name.startswith("run_package")]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.parametrize("name", ["run_nothing", "run_nothing.tool", "json.nothing"])
def test_a_module_has_to_exist(name: str, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    result = invoke("run", "-m", name)
    assert result.exit_code == 2 and f"There is no module '{name}'." in result.stderr
