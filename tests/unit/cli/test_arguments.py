from pathlib import Path

from hookloop.cli.shared.arguments import run_directory_of


def test_a_run_directory_and_its_config_stand_for_the_run(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.touch()
    assert run_directory_of(tmp_path) is None
    assert run_directory_of(config) is None
    (tmp_path / "metrics.jsonl").touch()
    assert run_directory_of(tmp_path) == tmp_path
    assert run_directory_of(config) == tmp_path
    assert run_directory_of(tmp_path / "other.yaml") is None
