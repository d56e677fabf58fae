"""The board in a real browser: 1,000 runs, and a curve of a million points, timed.

Run by ``make bench``; it needs Chromium, the built page and Playwright.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

RUNS, POINTS = 1_000, 1_000_000
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
SUMMARY = {
    "status": "completed",
    "iter": 1000,
    "epoch": 10,
    "started": "2026-01-31T09:00:00+00:00",
    "ended": "2026-01-31T09:10:00+00:00",
    "seconds": 600.0,
    "metrics": {"train/loss": 0.1, "val/accuracy": 0.9},
    "best": {"val/accuracy": {"value": 0.9, "iter": 900, "epoch": 9}},
}
CONFIG = (
    "seed: {number}\noptimizer:\n  type: AdamW\n  lr: {rate}\nmodel:\n  type: Net\n  width: 64\n"
)


def write_runs(home: Path) -> None:
    """Write run directories as trainings leave them."""
    for number in range(RUNS):
        path = home / "many" / f"run_{number:04d}"
        path.mkdir(parents=True)
        (path / "summary.json").write_text(json.dumps(SUMMARY))
        config = CONFIG.format(number=number, rate=10 ** -(1 + number % 4))
        (path / "config.yaml").write_text(config)
        lines = [{"iter": i, "epoch": 0, "train/loss": 1 / i} for i in range(50, 1001, 50)]
        (path / "metrics.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    path = home / "long" / "run"
    path.mkdir(parents=True)
    (path / "summary.json").write_text(json.dumps(SUMMARY))
    with (path / "metrics.jsonl").open("w") as file:
        for number in range(1, POINTS + 1):
            file.write(
                f'{{"time": {1769850000 + number}, "phase": "train", "span": "iter", '
                f'"iter": {number}, "epoch": {number // 10_000}, "train/loss": {number**-0.5}}}\n'
            )


def start(home: Path) -> tuple[subprocess.Popen[str], str]:
    """Start a board; return it and its address."""
    command = [sys.executable, "-m", "hookloop", "board", str(home), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().split()[4].rstrip("/")


def time_runs(browser: Any, address: str) -> dict[str, float]:  # noqa: ANN401
    """Return the seconds until the table of all runs is there: the first time, and again."""
    found = {}
    for name in ("1,000 runs, first time", "1,000 runs, again"):
        tab = browser.new_page()
        began = perf_counter()
        tab.goto(f"{address}/#/runs")
        tab.wait_for_selector('[data-testid="run-row"]')
        found[name] = perf_counter() - began
        tab.close()
    return found


def time_curve(browser: Any, address: str) -> dict[str, float]:  # noqa: ANN401
    """Return the seconds until a curve of a million points is drawn, and to draw a part of it."""
    tab = browser.new_page()
    (run,) = tab.request.get(f"{address}/api/runs").json()["runs"]
    found = {}
    for name in ("a million points, first time", "a million points, again"):
        began = perf_counter()
        tab.goto("about:blank")
        tab.goto(f"{address}/#/curves?run={run['id']}&metric=train%2Floss")
        tab.wait_for_selector('[data-testid="curve"]:not([data-points="0"])', timeout=120_000)
        found[name] = perf_counter() - began
    began = perf_counter()
    query = f"run={run['id']}&metric=train%2Floss&from=250000&to=750000"
    tab.request.get(f"{address}/api/curves?{query}")
    found["half of them, answered"] = perf_counter() - began
    return found


def main() -> None:
    """Measure, and print."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("The board is not measured: Chromium is missing (apt-get install chromium).")
        sys.exit(1 if os.environ.get("CI") == "true" else 0)
    from playwright.sync_api import sync_playwright

    from hookloop.board.page import built_page

    built_page()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        home = Path(folder)
        write_runs(home)
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        times: dict[str, float] = {}
        for name, measure in (("many", time_runs), ("long", time_curve)):
            process, address = start(home / name)
            try:
                times |= measure(browser, address)
            finally:
                process.terminate()
                process.wait()
        browser.close()
    print("The board in Chromium, seconds until it is shown:")
    for name, seconds in times.items():
        print(f"  {name:<32}{seconds:8.2f}")


if __name__ == "__main__":
    main()
