import pytest
from tests.tiny import make_trainer

from hookloop.errors import HookError
from hookloop.hooks import SaveFiles


def test_files_patterns_and_directories_are_copied(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("conf/a.yaml", "conf/b.yaml", "data/list.txt", "../outside.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name, encoding="utf-8")
    hook = SaveFiles(["conf/*.yaml", "data", tmp_path.parent / "outside.txt"])
    make_trainer(hooks=[hook], run_dir="run").train()
    kept = tmp_path / "run" / "files"
    assert {str(path.relative_to(kept)) for path in kept.rglob("*") if path.is_file()} == {
        "conf/a.yaml",
        "conf/b.yaml",
        "data/list.txt",
        "outside.txt",
    }


def test_missing_files_are_rejected_at_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").touch()
    with pytest.raises(HookError, match="'confg.yaml'.*'config.yaml'"):
        SaveFiles(["confg.yaml"])
    with pytest.raises(HookError, match=r"'\*.toml'"):
        SaveFiles(["*.toml"])
    with pytest.raises(HookError, match=r"write files=\['config.yaml'\]"):
        SaveFiles("config.yaml")


def test_files_of_one_name_from_elsewhere_are_both_kept(tmp_path, monkeypatch):
    work = tmp_path / "work"
    for folder in (work, tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        (folder / "x.txt").write_text(folder.name, encoding="utf-8")
    monkeypatch.chdir(work)
    make_trainer(hooks=[SaveFiles(["../a/x.txt", "../b/x.txt"])], run_dir="run").train()
    kept = {path.read_text() for path in (work / "run" / "files").rglob("x.txt")}
    assert kept == {"a", "b"}
