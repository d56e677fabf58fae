"""What `make release-check` holds: one version, equal bytes, and a list of what is installed."""

import importlib.util
import json
from pathlib import Path

import pytest

from hookloop.version import VERSION

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def release():
    path = ROOT / "scripts" / "release_check.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_tag_that_is_not_there_is_rejected(release):
    assert release.check_version(None) == VERSION
    with pytest.raises(release.NotReadyError, match="v9"):
        release.check_version("v9.9.9")


def test_the_bill_names_what_an_install_brings_and_no_build_for_some_hardware(release, tmp_path):
    bill = json.loads(release.write_bill(tmp_path, VERSION).read_text("utf-8"))
    found = {one["name"]: one["version"] for one in bill["components"]}
    assert {"torch", "numpy", "pydantic", "pydantic-core", "click"} <= set(found)
    assert not {"pytest", "starlette", "mcp"} & set(found)
    assert not any("+" in number for number in found.values())


@pytest.mark.slow
def test_two_builds_of_a_commit_are_equal_to_the_byte(release, tmp_path):
    if not (ROOT / release.PAGE / "index.html").is_file():
        with pytest.raises(release.NotReadyError, match="make board"):
            release.build_twice(tmp_path)
        return
    names = [path.name for path in release.build_twice(tmp_path)]
    assert len(names) == 10
    assert sum(name.endswith(".whl") for name in names) == 5
