"""What registries hold."""

import json

import pytest

from hookloop_mmengine.registry import (
    Registry,
    count_registered_modules,
    traverse_registry_tree,
)


@pytest.fixture
def child():
    parent = Registry("thing", scope="toys")
    made = Registry("thing", parent=parent, scope="kids")
    made.register_module(name="Dict", module=dict)
    return made


def test_a_tree_is_described_from_its_root(child):
    assert traverse_registry_tree(child, verbose=False) == [
        {"num_modules": 0, "scope": "toys"},
        {"num_modules": 1, "scope": "kids", "": ["Dict"]},
    ]


def test_all_registries_are_counted_and_written(tmp_path):
    found = count_registered_modules(str(tmp_path), verbose=False)
    assert found["registries"]["HOOKS"][0]["scope"] == "mmengine"
    written = json.loads((tmp_path / "modules_statistic_results.json").read_text())
    assert written["registries"].keys() == found["registries"].keys()
