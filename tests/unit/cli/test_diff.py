import json

import pytest


@pytest.mark.slow
def test_two_runs_are_compared(invoke):
    for name, lr in (("one", 0.1), ("same", 0.1), ("other", 0.2)):
        invoke("train", "config.yaml", f"optimizer.lr={lr}", "--run-dir", name, "--quiet")
    same = invoke("diff", "one", "same")
    assert (same.exit_code, same.output.splitlines()[-1]) == (0, "There is no difference.")
    other = invoke("diff", "one", "other")
    assert other.exit_code == 1
    assert "optimizer.lr  0.1  0.2" in " ".join(other.output.split(" ")).replace("   ", "  ")
    assert "the first difference is" in other.output
    found = json.loads(invoke("diff", "one", "other", "--json").stdout)
    assert (found["equal"], found["exit_code"]) == (False, 1)
    assert found["config"] == {"optimizer.lr": [0.1, 0.2]}
    assert found["data"] == {}
    shorter = ("train", "config.yaml", "--run-dir", "shorter", "train_data.count=3", "--quiet")
    invoke(*shorter, "train_data.type=cli_project.batches")
    found = json.loads(invoke("diff", "one", "shorter", "--json").stdout)
    assert found["data"]


def test_what_is_not_a_run_is_trouble(invoke, project):
    assert invoke("diff", "one", "other").exit_code == 2
    (project / "run").mkdir()
    (project / "run" / "summary.json").write_text("{")
    damaged = invoke("diff", "run", "run")
    assert damaged.exit_code == 2
    assert "cannot be compared" in damaged.output
