"""The board in a real browser: 1,000 runs, and a curve of a million points, timed.

Run by ``make bench``; it needs Chromium, the built page and Playwright.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter
from typing import Any

RUNS, POINTS = 1_000, 1_000_000
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
REPEATS = 7
METRICS = (
    *("train/loss", "train/lr", "train/iter_time", "train/data_time", "train/samples_per_second"),
    *("train/memory/rss", "train/memory/rss_peak", "train_epoch/loss", "train_epoch/iter_time"),
    *("val/loss", "val/accuracy", "val/f1"),
)
SECTIONS = ("val_data", "test_data")
HOOKS = ("SaveCheckpoint", "StopOnPlateau", "AverageWeights", "LogMemory", "RecordThroughput")


def summary_of(number: int) -> dict[str, object]:
    """Return the summary of a run, as long as that of a real one."""
    random = Random(number)
    best = {"value": random.random(), "iter": 900, "epoch": 9}
    return {
        **{"status": "completed", "reason": "", "exit_code": 0, "problem": None, "disabled": []},
        **{"iter": 1000, "epoch": 10, "total_iters": 1000, "total_epochs": 10, "ranks": 1},
        **{"batch_size": 64, "main_metric": "val/accuracy", "changes": [], "seconds": 600.0},
        "started": f"2026-01-31T{number // 60:02d}:{number % 60:02d}:00+00:00",
        "written": "2026-01-31T23:10:00+00:00",
        "ended": "2026-01-31T23:10:00+00:00",
        "metrics": {name: random.random() for name in METRICS},
        "best": {"val/loss": best, "val/accuracy": {**best, "value": random.random()}},
    }


def config_of(number: int) -> str:
    """Return a config of 40 values, three of which are other ones in other runs."""
    lines = [f"seed: {number}", "max_epochs: 10", "accumulate: 1", "precision: bf16", "model:"]
    lines += ["  type: project.models.Net", f"  width: {32 << number % 3}", "  depth: 18"]
    lines += [
        "optimizer:",
        "  type: AdamW",
        f"  lr: {10 ** -(1 + number % 4)}",
        "  betas: [0.9, 1]",
    ]
    for name in ("train_data", *SECTIONS):
        lines += [f"{name}:", "  type: project.data.loader", f"  split: {name}", "  batch_size: 64"]
        lines += ["  workers: 4", "  augment: {flip: true, crop: 32, noise: 0.1}"]
    lines.append("hooks:")
    for name in HOOKS:
        lines += [f"- type: {name}", "  every: 1 epochs", "  priority: 50"]
    return "\n".join(lines) + "\n"


def write_runs(home: Path) -> None:
    """Write run directories as trainings leave them."""
    for number in range(RUNS):
        path = home / "many" / f"run_{number:04d}"
        path.mkdir(parents=True)
        (path / "summary.json").write_text(json.dumps(summary_of(number)))
        (path / "config.yaml").write_text(config_of(number))
        lines = [
            {"iter": i, "epoch": 0, **dict.fromkeys(METRICS, 1 / i)} for i in range(50, 1001, 50)
        ]
        (path / "metrics.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    path = home / "long" / "run"
    path.mkdir(parents=True)
    (path / "summary.json").write_text(json.dumps(summary_of(0)))
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


def time_runs(browser: Any, address: str, process: int) -> dict[str, float]:  # noqa: ANN401
    """Return the seconds until the table of all runs is there: the first time, and again.

    It is there when all runs are counted and those in sight are shown; then it is filtered and
    sorted. The first time, the server has read nothing yet.
    """
    found: dict[str, float] = {}
    sort = 'th button[title="val/accuracy"]'
    for name in ("1,000 runs, first time", "1,000 runs, again"):
        tab = browser.new_page()
        worked, began = cpu_seconds(process), perf_counter()
        tab.goto(f"{address}/#/runs", wait_until="commit")
        tab.wait_for_selector(f'[data-testid="runs-table"][data-rows="{RUNS}"] [data-run]')
        found[name] = perf_counter() - began
        found[f"{name}, CPU of the server"] = cpu_seconds(process) - worked
        found["filtered to 250"] = time_deed(tab, lambda tab: tab.fill("input", "lr=0.01"), 250)
        tab.fill("input", "")
        found["sorted by a metric"] = time_deed(tab, lambda tab: tab.click(sort), RUNS)
        tab.close()
    return found


def time_deed(tab: Any, deed: Callable[[Any], None], rows: int) -> float:  # noqa: ANN401
    """Return the seconds until a deed has led to so many rows."""
    began = perf_counter()
    deed(tab)
    tab.wait_for_selector(f'[data-testid="runs-table"][data-rows="{rows}"] [data-run]')
    return perf_counter() - began


def cpu_seconds(process: int) -> float:
    """Return how long a process has computed; the clock on the wall also shows what others do."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # Linux has it.
        return math.nan
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def time_curve(browser: Any, address: str, process: int) -> dict[str, float]:  # noqa: ANN401
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

    from hookloop_board.page import built_page

    built_page()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        home = Path(folder)
        write_runs(home)
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        times: dict[str, list[float]] = {}
        for name, measure, repeats in (("many", time_runs, REPEATS), ("long", time_curve, 3)):
            for _ in range(repeats):
                process, address = start(home / name)
                try:
                    for one, seconds in measure(browser, address, process.pid).items():
                        times.setdefault(one, []).append(seconds)
                finally:
                    process.terminate()
                    process.wait()
        browser.close()
    load = f", load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores" if os.name != "nt" else ""
    print(f"The board in Chromium, seconds until it is shown{load}:")
    print(f"  {'':<42}{'least':>8}{'median':>8}")
    for name, found in times.items():
        print(f"  {name:<42}{min(found):8.2f}{median(found):8.2f}")


if __name__ == "__main__":
    main()
