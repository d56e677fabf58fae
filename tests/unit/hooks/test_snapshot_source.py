import subprocess
import zipfile

import pytest
from tests.tiny import make_trainer

from hookloop.errors import HookError
from hookloop.hooks import SaveCheckpoint, SnapshotSource


def write(root, **files):
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_py", ".py").replace("_bin", ".bin")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def names_in(archive):
    with zipfile.ZipFile(archive) as opened:
        return set(opened.namelist())


def test_code_is_kept_and_other_files_are_not(tmp_path):
    root = tmp_path / "project"
    write(root, train_py="x = 1", pkg__model_py="y = 2", weights_bin="0", runs__old_py="")
    write(root, big_py="#" * 1_100_000)  # Above the limit: data, not code.
    (root / "env").mkdir()
    (root / "env" / "pyvenv.cfg").touch()
    write(root, env__site_py="")
    run_dir = root / "out"
    make_trainer(hooks=[SnapshotSource(root)], run_dir=run_dir).train()
    assert names_in(run_dir / "source.zip") == {"train.py", "pkg/model.py"}
    assert not (run_dir / "git.txt").exists()


def test_the_commit_and_the_changes_since_are_kept(tmp_path):
    def git(*arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)

    root = tmp_path / "project"
    write(root, train_py="x = 1\n")
    git("init")
    git("add", ".")
    git("commit", "-m", "First")
    write(root, train_py="x = 2\n")
    make_trainer(hooks=[SnapshotSource(root)], run_dir=tmp_path / "run").train()
    assert "First" in (tmp_path / "run" / "git.txt").read_text(encoding="utf-8")
    assert "+x = 2" in (tmp_path / "run" / "git.diff").read_text(encoding="utf-8")


def test_a_resumed_run_adds_its_own_code(tmp_path):
    root = tmp_path / "project"
    write(root, train_py="x = 1")

    def train(**options):
        hooks = [SnapshotSource(root), SaveCheckpoint()]
        make_trainer(hooks=hooks, run_dir=tmp_path / "run", **options).train()

    train(max_epochs=1)
    write(root, more_py="")
    train(max_epochs=2, resume=True)
    assert names_in(tmp_path / "run" / "source.zip") == {"train.py"}
    assert names_in(tmp_path / "run" / "source_iter_3.zip") == {"train.py", "more.py"}


def test_a_directory_that_does_not_exist_is_rejected():
    with pytest.raises(HookError, match="'nowhere'"):
        SnapshotSource("nowhere")
