import copy
import pickle

import pytest
import torch

from hookloop.checkpoint.saving.snapshot import Snapshot
from hookloop.data.portable import to_portable
from hookloop.errors import HookloopError
from hookloop.runs import plain_yaml
from hookloop.runs.records import to_json
from hookloop.secret import Reference, Secret, fingerprints, hide, redact, without_credentials
from hookloop.trainer.trainer import Trainer
from hookloop.writers.records import Text

TOKEN = "unit-test-token"


@pytest.fixture
def token() -> Secret:
    return Secret(TOKEN, "${secret:UNIT}")


def test_code_sees_the_text_and_people_the_reference(token: Secret) -> None:
    assert token == TOKEN
    assert f"{token}" == TOKEN
    assert repr([token]) == "['${secret:UNIT}']"


@pytest.mark.parametrize("made", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_is_one_too(token: Secret, made) -> None:  # type: ignore[no-untyped-def]
    again = made(token)
    assert again == TOKEN
    assert repr(again) == repr(token)
    kept = made(Reference("${env:A}", 3))
    assert (kept, kept.value) == ("${env:A}", 3)


def test_no_way_to_disk_lets_it_through(token: Secret) -> None:
    nested = {"a": [token, f"Bearer {token}"]}
    shown = {"a": ["${secret:UNIT}", "Bearer ${secret:UNIT}"]}
    assert to_json(nested) == to_json(shown)
    assert TOKEN not in plain_yaml.dump({"a": [token]})
    assert Snapshot().take(nested) == shown
    assert to_portable(nested) == shown
    assert Text("a", f"{token}!").text == "${secret:UNIT}!"
    assert str(HookloopError(f"bad {token}")) == "bad ${secret:UNIT}"
    trainer = Trainer(torch.nn.Linear(1, 1), setup={"config": nested})
    assert trainer.run.config == shown


def test_a_reference_goes_to_disk_as_it_is_written() -> None:
    assert to_json(Reference("${env:A}", 3)) == '"${env:A}"'
    assert plain_yaml.dump({"a": Reference("${env:A}", 3)}) == "a: ${env:A}\n"


@pytest.mark.parametrize("short", ["abc", "12345678"])
def test_what_is_everywhere_is_not_looked_for(short: str) -> None:
    hide(short, "${secret:SHORT}")
    assert redact(f"0.{short}") == f"0.{short}"
    assert redact(Secret(short, "${secret:SHORT}")) == "${secret:SHORT}"


def test_the_longer_of_two_secrets_wins() -> None:
    hide("overlapping", "${secret:A}")
    hide("overlapping-and-longer", "${secret:B}")
    assert redact("overlapping-and-longer overlapping") == "${secret:B} ${secret:A}"


def test_only_numbers_have_fingerprints() -> None:
    config = {
        "lr": Reference("${env:LR}", 0.1),
        "hooks": [{"on": Reference("${env:ON}", True), "key": Reference("${env:KEY}", "text")}],
        "plain": 3,
    }
    found = fingerprints(config)
    assert list(found) == ["lr", "hooks.0.on"]
    assert all(0 <= number < 1 << 16 for number in found.values())
    assert fingerprints({**config, "lr": Reference("${env:LR}", 0.2)})["lr"] != found["lr"]


def test_a_url_loses_user_and_password() -> None:
    assert without_credentials("s3://bucket/a@b") == "s3://bucket/a@b"
    assert without_credentials("ftp://me:pw@host:21/a") == "ftp://host:21/a"
