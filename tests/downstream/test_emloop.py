"""With the real emloop installed: the record is true, and its own hooks run in our Trainer.

``make downstream`` runs this in an environment of its own; elsewhere it is skipped.
"""

import importlib.util
import json

import pytest

if importlib.util.find_spec("emloop") is None:
    pytest.skip("only `make downstream` installs emloop", allow_module_level=True)

from tests.alike import assert_alike
from tests.downstream import record_emloop
from tests.downstream.emloop_scenarios import SCENARIOS
from tests.emloop.test_against_emloop import RECORDED, train

pytestmark = pytest.mark.filterwarnings("ignore")  # The real one warns a lot.


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_record_is_what_emloop_does(name):
    assert_alike(RECORDED[name], json.loads(json.dumps(record_emloop.record(SCENARIOS[name]))))


@pytest.mark.parametrize("name", SCENARIOS)
def test_emloops_own_hooks_do_in_our_trainer_what_they_do_in_its_own(name, tmp_path, caplog):
    found = train(
        SCENARIOS[name], tmp_path / "run", caplog, record_emloop.emloop.hooks, logger=None
    )
    assert_alike(RECORDED[name], json.loads(json.dumps(found)))
