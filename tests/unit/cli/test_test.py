"""``hookloop test``: evaluate on the test data."""

from pathlib import Path

from tests.unit.cli.conftest import Invoke


def test_the_numbers_are_those_of_the_test_data(project: Path, invoke: Invoke) -> None:
    result = invoke("test", "config.yaml")
    assert result.exit_code == 0, result.output
    assert [word for word in result.stdout.split() if "/" in word] == ["test/loss"]


def test_other_data_gives_other_numbers(project: Path, invoke: Invoke) -> None:
    first = invoke("test", "config.yaml").stdout
    assert first == invoke("test", "config.yaml").stdout
    assert first != invoke("test", "config.yaml", "test_data.seed=9").stdout


def test_a_config_without_such_data_is_rejected(project: Path, invoke: Invoke) -> None:
    result = invoke("test", "config.yaml", "data.test=null")
    assert result.exit_code == 2
    assert "There is nothing to evaluate: give test_data=." in result.stderr


def test_a_checkpoint_has_to_exist(project: Path, invoke: Invoke) -> None:
    assert invoke("test", "config.yaml", "--checkpoint", "none.pth").exit_code == 2
