from pathlib import Path

import pytest

from hookloop.config.reading.interpolate import read_secret
from hookloop.errors import HookloopError


def test_the_environment_comes_first_and_then_the_file_that_it_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("from-the-file\n")
    monkeypatch.delenv("UNIT_KEY", raising=False)
    monkeypatch.setenv("UNIT_KEY_FILE", str(tmp_path / "key"))
    assert read_secret("UNIT_KEY") == "from-the-file"
    monkeypatch.setenv("UNIT_KEY", "from-the-environment")
    assert read_secret("UNIT_KEY") == "from-the-environment"
    assert read_secret(f"file:{tmp_path}/key") == "from-the-file"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("UNIT_NONE", "set the environment variable UNIT_NONE, or let UNIT_NONE_FILE name"),
        ("file:{0}/none", "cannot be read: No such file"),
        ("file:none", "needs an absolute path"),
        ("file:{0}/empty", "is empty"),
        ("file:{0}/large", "too large to be a secret"),
        ("file:{0}/bytes", "is not text"),
    ],
)
def test_a_missing_secret_is_reported(name: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "large").write_text("x" * 70_000)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(HookloopError, match=words):
        read_secret(name.format(tmp_path))
