from hookloop.runs.changes import read_changes
from hookloop.runs.layout import RunDir


def test_a_summary_with_other_changes_is_read_without_them(tmp_path):
    run = RunDir.create(tmp_path / "run")
    assert read_changes(run) == []
    run.write_summary({"changes": "none"})
    assert read_changes(run) == []
    run.write_summary({"changes": [1, {"key": "a"}]})
    assert read_changes(run) == [{"key": "a"}]
