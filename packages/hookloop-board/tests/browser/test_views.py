"""Each view of a real run; with HOOKLOOP_SCREENSHOTS, its picture for the docs."""

import json
import math
import os
import random
import re
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import expect

from board_runs import write_run

WAIT = 60_000
# Now, because each test works in a directory of its own.
SHOTS = (
    Path(os.environ["HOOKLOOP_SCREENSHOTS"]).resolve()
    if "HOOKLOOP_SCREENSHOTS" in os.environ
    else None
)

START = {
    "iter": 0,
    "time": "2026-01-31T09:30:00+00:00",
    "command": ["python", "train.py", "optimizer.lr=0.1"],
    "host": "node7",
    "python": "3.11.7",
    "torch": {"version": "2.13.0", "cuda": None},
    "git": {"commit": "3f2a9c1", "dirty": False},
    "packages": {"numpy": "2.4.6", "torch": "2.13.0"},
}
"""An environment for the pictures, instead of that of this machine."""

ROOT = Path(__file__).parents[4]
RUNS = ("digits", "digits-small-lr", "digits-large-lr", "digits-resumed", "digits-killed")
TRIALS = 12


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Real runs, one with everything, one resumed and one killed; and a sweep."""
    home = tmp_path_factory.mktemp("board") / "runs"
    home.mkdir()
    path = [ROOT / "src", ROOT / "examples" / "digits", os.environ.get("PYTHONPATH", "")]
    subprocess.run(
        [sys.executable, str(Path(__file__).with_name("digits.py")), str(home)],
        check=True,
        cwd=home.parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), "OMP_NUM_THREADS": "1"},
    )
    for name in RUNS:
        resumed = [{**START, "iter": 120 if SHOTS else 40, "host": "node3"}] * (
            name == "digits-resumed"
        )
        (home / name / "environment.json").write_text(json.dumps({"starts": [START, *resumed]}))
        log = home / name / "run.log"
        if log.is_file():
            log.write_text(log.read_text().replace(socket.gethostname(), "node7"))
    write_sweep(home / "sweep")
    return home


def write_sweep(folder):
    """Twelve trials, as `hookloop sweep` leaves them."""
    rng = random.Random(0)
    trials = []
    for number in range(TRIALS):
        rate, width = 10 ** rng.uniform(-4, -1), rng.choice([32, 64, 128])
        value = 0.95 - abs(math.log10(rate) + 2.5) / 10 + width / 2000
        loss = {"train/loss": 3 * (1 - value), "val/accuracy": value}
        best = {"val/accuracy": {"value": value, "iter": 100, "epoch": 5}}
        began = datetime.now(UTC) - timedelta(hours=2, minutes=-2 * number)
        summary = {"metrics": loss, "best": best, "started": began.isoformat()}
        config = f"optimizer:\n  type: AdamW\n  lr: {rate}\nmodel:\n  width: {width}\n"
        write_run(folder / f"trial_{number:04d}", summary=summary, config=config)
        trials.append(
            {
                "number": number,
                "state": "complete",
                "value": value,
                "params": {"lr": rate, "width": width},
                "run": f"trial_{number:04d}",
            }
        )
    (folder / "sweep.json").write_text(
        json.dumps({"metric": "val/accuracy", "mode": "max", "trials": trials})
    )


@pytest.fixture(scope="module")
def board(boards, runs):
    return boards(runs.name, cwd=runs.parent)


@pytest.fixture
def ids(board, tab):
    answer = tab.request.get(f"{board.origin}/api/runs").json()
    return {one["name"]: one["id"] for one in answer["runs"]}


def shoot(tab, name):
    if SHOTS:
        SHOTS.mkdir(parents=True, exist_ok=True)
        tab.wait_for_timeout(1000)
        tab.screenshot(path=SHOTS / f"{name}.png")


def test_the_table_is_filtered_and_sorted(board, tab):
    tab.goto(f"{board.origin}/#/runs")
    rows = tab.get_by_test_id("run-row")
    expect(rows).to_have_count(len(RUNS) + TRIALS, timeout=WAIT)
    expect(tab).to_have_title(re.compile("hookloop board"))
    shoot(tab, "runs")
    dead = tab.locator('[data-testid="run-row"][data-status="dead"]')
    expect(dead).to_contain_text("digits-killed")
    tab.get_by_test_id("filter").fill("digits")
    expect(rows).to_have_count(len(RUNS))


def test_curves_of_several_runs(board, tab, ids):
    names = ("digits", "digits-small-lr", "digits-large-lr", "digits-resumed")
    query = "&".join(f"run={ids[name]}" for name in names)
    metrics = "metric=train%2Floss&metric=val%2Faccuracy"
    tab.goto(f"{board.origin}/#/curves?{query}&{metrics}")
    expect(tab.get_by_test_id("curve")).to_have_count(2, timeout=WAIT)
    for number in range(2):
        expect(tab.get_by_test_id("curve").nth(number)).not_to_have_attribute("data-points", "0")
    shoot(tab, "curves")
    tab.get_by_test_id("log-scale").check()
    tab.get_by_test_id("axis").select_option("epoch")
    with tab.expect_download() as download:
        tab.get_by_test_id("export-csv").click()
    assert Path(download.value.path()).read_text().startswith("run,metric,iter,epoch,time,value")


PARTS = [
    ("", "digits"),
    ("hooks", "after_train_iter"),
    ("checkpoints", ".pth"),
    ("config", "optimizer.lr"),
    ("environment", "python"),
    ("log", "completed"),
    ("media", "confusion"),
    ("predictions", "targets"),
]
"""The parts of a run, and something that each of them shows."""


@pytest.mark.parametrize(("view", "text"), PARTS)
def test_the_views_of_a_run(board, tab, ids, view, text):
    tab.goto(f"{board.origin}/#/run/{ids['digits']}" + (f"/{view}" if view else ""))
    expect(tab.locator("body")).to_contain_text(text, timeout=WAIT)
    shoot(tab, view or "run")


def test_the_timetable_has_costs(board, tab, ids):
    tab.goto(f"{board.origin}/#/run/{ids['digits']}/hooks")
    table = tab.get_by_test_id("hooks-table")
    expect(table).to_contain_text("after_train_iter", timeout=WAIT)
    expect(tab.locator("body")).to_contain_text("iterations 11 to 30")


def test_sweeps(board, tab):
    tab.goto(f"{board.origin}/#/sweeps")
    expect(tab.locator("body")).to_contain_text("val/accuracy", timeout=WAIT)
    shoot(tab, "sweeps")


CUT = """() => {
    const scrolls = (e) => /auto|scroll/.test(getComputedStyle(e).overflowX);
    const reachable = (e) => e.tabIndex >= 0 || e.querySelector("a, button, input, [tabindex]");
    const cut = (e) => {
        if (scrolls(e) && e.scrollWidth > e.clientWidth + 1 && !reachable(e)) return true;
        const {width, right} = e.getBoundingClientRect();
        if (!width || right <= document.documentElement.clientWidth + 1) return false;
        let outer = e.parentElement;
        while (outer && !scrolls(outer)) outer = outer.parentElement;
        return !outer;
    };
    const wide = document.documentElement.scrollWidth > innerWidth ||
        document.body.scrollWidth > innerWidth;
    const found = [...document.querySelectorAll("header *, main *")].filter(cut);
    return [...(wide ? ["the page"] : []), ...found.map((e) => `${e.tagName}.${e.className}`)];
}"""
"""What a page cuts off: wider than the page outside of what scrolls, or beyond a keyboard's reach.
"""

AXE = """async (rules) => (await axe.run(document, rules ? {runOnly: rules} : {})).violations
    .filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => `${one.id}: ${one.nodes.map((node) => node.target).slice(0, 3).join("; ")}`)"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_view_is_readable_and_accessible(board, browser, axe, theme):
    context = browser.new_context(color_scheme=theme, bypass_csp=True)
    answer = context.request.get(f"{board.origin}/api/runs").json()
    ids = {one["name"]: one["id"] for one in answer["runs"]}
    digits, resumed = ids["digits"], ids["digits-resumed"]
    views = {
        "runs": "digits-killed",
        "sweeps": "val/accuracy",
        f"curves?run={digits}&run={resumed}&metric=train%2Floss": "train/loss",
        **{f"run/{digits}{f'/{part}' if part else ''}": text for part, text in PARTS},
    }
    tab = context.new_page()
    tab.add_init_script(axe)
    problems = []
    for view, text in views.items():
        tab.set_viewport_size({"width": 360, "height": 800})
        tab.goto(f"{board.origin}/#/{view}")
        expect(tab.locator("main")).to_contain_text(text, timeout=WAIT)
        expect(tab.locator("main .state[role=status]")).to_have_count(0, timeout=WAIT)
        for width in (360, 768, 1280, 2560) if theme == "light" else (360,):
            tab.set_viewport_size({"width": width, "height": 800})
            tab.wait_for_timeout(60)  # Until what watches sizes has drawn again.
            problems += [(view, width, one) for one in tab.evaluate(CUT)]
        # In the dark, nothing is different but the colours.
        rules = ["color-contrast"] if theme == "dark" else None
        problems += [(view, one) for one in tab.evaluate(AXE, rules)]
    context.close()
    assert not problems, problems


def test_tags_and_a_note_are_kept(board, tab, ids, runs):
    answer = tab.request.post(
        f"{board.origin}/api/runs/{ids['digits']}/labels",
        data={"tags": ["baseline"], "note": "first"}, headers={"Origin": board.origin},
    )  # fmt: skip
    assert answer.ok and json.loads((runs / "digits" / "tags.json").read_text())["note"] == "first"
    tab.goto(f"{board.origin}/#/runs")
    expect(tab.get_by_label("Tags of digits", exact=True).first).to_have_value(
        "baseline", timeout=WAIT
    )


def test_an_exported_file_opens_without_a_server(runs, tab, tmp_path, page_directory):
    file = tmp_path / "page.html"
    subprocess.run(
        [sys.executable, "-m", "hookloop", "board", str(runs), "--export", str(file)],
        check=True,
        cwd=tmp_path,
    )
    tab.goto(f"file://{file}")
    expect(tab.get_by_test_id("run-row")).to_have_count(len(RUNS) + TRIALS, timeout=WAIT)
    run = tab.locator('[data-testid="run-row"]', has_text="digits").first.get_attribute("data-run")
    tab.goto(f"file://{file}#/curves?run={run}&metric=train%2Floss")
    expect(tab.get_by_test_id("curve")).to_have_count(1)
    for view in ("", "/hooks", "/checkpoints", "/media"):
        tab.goto(f"file://{file}#/run/{run}{view}")
        expect(tab.locator("body")).to_contain_text("digits")
    expect(tab.get_by_test_id("ask-stop")).to_be_hidden()
    assert all(one.startswith(("file:", "data:", "blob:")) for one in tab.requests)
