"""A command copied from the page runs as it is."""

import shlex
import shutil
from pathlib import Path

from playwright.sync_api import expect
from tests import warm

PROJECT = Path(__file__).parents[4] / "tests" / "docs_project"
WAIT = 60_000


def test_the_command_of_a_checkpoint_is_copied_and_run(serve, tab, tmp_path):
    shutil.copytree(PROJECT, tmp_path / "my project", ignore=shutil.ignore_patterns("__pycache__"))
    home = tmp_path / "my project"
    run_dir = tmp_path / "runs" / "a run"
    done = warm.run("train", "config.yaml", "--run-dir", str(run_dir), cwd=home)
    assert done.returncode == 0, done.stderr
    board = serve()
    tab.goto(f"{board.origin}/#/runs")
    run = tab.get_by_test_id("run-row").first
    expect(run).to_be_visible(timeout=WAIT)
    tab.goto(f"{board.origin}/#/run/{run.get_attribute('data-run')}/checkpoints")
    row = tab.get_by_test_id("checkpoint-row").first
    row.get_by_role("button", name="Verify").click()
    expect(row).to_contain_text("whole", timeout=WAIT)
    row.get_by_role("button", name="Commands").click()
    tab.locator('[data-testid="copy-command"][data-command="test"]').first.click()
    expect(tab.locator('[data-testid="copy-command"][data-command="test"]').first).to_have_text(
        "Copied"
    )
    command = tab.evaluate("navigator.clipboard.readText()")
    words = shlex.split(command)
    assert words[:2] == ["hookloop", "test"]
    done = warm.run(*words[1:], cwd=tmp_path)
    assert done.returncode == 0 and "accuracy" in done.stdout, done.stdout + done.stderr
