"""The dialects do what the real packages did when they were recorded in tests/downstream."""

import json
import types
from pathlib import Path

import pytest
from tests.alike import assert_alike
from tests.downstream import lightning_scenarios, transformers_scenarios

from hookloop import dialects

pytestmark = pytest.mark.slow  # Each case is a run of the command line, or several trainings.

RECORDED = Path(__file__).parents[3] / "tests" / "downstream" / "recorded"
LIGHTNING = json.loads((RECORDED / "lightning.json").read_text())
TRANSFORMERS = json.loads((RECORDED / "transformers.json").read_text())


@pytest.fixture(scope="module")
def lightning():
    """The names of the stand-in."""
    with dialects.alias("lightning"):
        from lightning.pytorch import callbacks

        return types.SimpleNamespace(
            **{name: getattr(callbacks, name) for name in callbacks.__all__}
        )


@pytest.fixture(scope="module")
def transformers():
    """The names of the stand-in."""
    with dialects.alias("transformers"):
        import transformers as package

        return types.SimpleNamespace(**{name: getattr(package, name) for name in package.__all__})


@pytest.mark.parametrize("name", lightning_scenarios.SCENARIOS)
def test_a_callback_does_what_it_does_in_lightning(name, lightning, tmp_path):
    scenario = lightning_scenarios.SCENARIOS[name]
    found = lightning_scenarios.train_ours(scenario, lightning, tmp_path / "run")
    assert_alike(LIGHTNING[name], json.loads(json.dumps(found)))


@pytest.mark.parametrize("name", transformers_scenarios.SCENARIOS)
def test_a_callback_does_what_it_does_in_transformers(name, transformers, tmp_path):
    scenario = transformers_scenarios.SCENARIOS[name]
    found = transformers_scenarios.train_ours(scenario, transformers, tmp_path / "run")
    assert_alike(TRANSFORMERS[name], json.loads(json.dumps(found)))
