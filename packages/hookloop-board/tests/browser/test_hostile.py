"""Whatever runs are named and have written, the page shows text and nothing else."""

import json
import os

import pytest
from playwright.sync_api import expect

from board_runs import record, write_run

WAIT = 60_000
MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>"
EVIL = f"{MARKUP}\x1b[31m\u202e"


@pytest.fixture
def hostile(tmp_path):
    runs = tmp_path / "runs"
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "file.txt").write_text("TOP SECRET")
    write_run(secret / "other run")
    path = write_run(
        runs / MARKUP.replace("/", "\u2215"),
        [record(i, **{"train/loss": 1 / i, EVIL: 1.0}) for i in range(1, 50)],
        {"reason": EVIL, "disabled": [{"hook": EVIL, "point": EVIL, "error": EVIL}],
         "metrics": {EVIL: 1.0}, "best": {EVIL: {"value": 1.0, "epoch": 1, "iter": 1}}},
        config=f"note: {json.dumps(MARKUP)}\n{json.dumps(MARKUP)}: 1\n",
    )  # fmt: skip
    (path / "tags.json").write_text(json.dumps({"tags": [MARKUP], "note": EVIL}))
    (path / "run.log").write_text(f"2026-01-31 09:00:00  warning: {EVIL}\n")
    (path / "texts").symlink_to(secret)
    (path / "leak.md").symlink_to(secret / "file.txt")
    listed = {EVIL: "note.md", "leak": "leak.md", "up": "../../secret/file.txt"}
    lines = [
        json.dumps({"kind": "text", "name": name, "iter": 1, "file": file})
        for name, file in listed.items()
    ]
    (path / "media.jsonl").write_text("".join(f"{line}\n" for line in lines))
    (path / "note.md").write_text(MARKUP)
    hooks = [
        {"name": EVIL, "type": MARKUP, "state": {MARKUP: MARKUP}, "reads": [MARKUP], "writes": []}
    ]
    (path / "hooks.json").write_text(
        json.dumps(
            {
                "points": [MARKUP],
                "hooks": hooks,
                "cells": [{"point": MARKUP, "hook": EVIL, "order": 0}],
            }
        )
    )
    checkpoints = [
        {"name": MARKUP.replace("/", "|"), "iter": 1, "epoch": 0},
        {"name": "../../x", "iter": 1, "epoch": 0},
    ]
    (path / "checkpoints.json").write_text(json.dumps({"checkpoints": checkpoints}))
    (path / "predictions").mkdir()
    (path / "predictions" / "p.csv").write_text(f'id,"{MARKUP}"\n1,"{MARKUP}"\n')
    (runs / "link").symlink_to(secret / "other run")
    huge = write_run(runs / "huge")
    with (huge / "metrics.jsonl").open("ab") as file:
        file.write(b'{"iter": 200, "train/loss": ')
    os.truncate(huge / "metrics.jsonl", 3_000_000_000)  # A hole of gigabytes, in one line.
    return runs


def test_every_view_shows_text(serve, tab, hostile):
    board = serve()
    tab.goto(f"{board.origin}/#/runs")
    rows = tab.get_by_test_id("run-row")
    expect(rows).to_have_count(2, timeout=WAIT)  # The link is none.
    ids = [rows.nth(number).get_attribute("data-run") for number in range(2)]
    for run in ids:
        for view in (
            "",
            "/hooks",
            "/checkpoints",
            "/config",
            "/environment",
            "/log",
            "/media",
            "/predictions",
        ):
            tab.goto(f"{board.origin}/#/run/{run}{view}")
            expect(tab.locator("main")).to_be_visible()
            expect(tab.locator("main .state[role=status]")).to_have_count(0, timeout=WAIT)
            text = tab.locator("body").inner_text()
            assert "TOP SECRET" not in text and "\x1b" not in text
            assert tab.locator("img[onerror]").count() == 0
    tab.goto(f"{board.origin}/#/curves?" + "&".join(f"run={run}" for run in ids))
    expect(tab.get_by_test_id("curve").first).to_be_visible(timeout=WAIT)


def test_nothing_outside_is_reached_by_any_address(serve, browser, hostile):
    board = serve()
    context = browser.new_context()
    for path in (
        "/../secret/file.txt", "/%2e%2e/%2e%2e/secret/file.txt", "/api/runs/..%2f..%2fsecret",
        "/api/runs/%00", "/assets/..%5c..%5csecret", "/api/runs/0000000000000000/media/..%2fx",
    ):  # fmt: skip
        answer = context.request.get(board.origin + path)
        assert answer.status in (400, 404) and "SECRET" not in answer.text(), path
    context.close()


def test_a_wrong_token_shows_nothing(serve, browser, tmp_path):
    write_run(tmp_path / "runs" / "a")
    board = serve(HOOKLOOP_BOARD_TOKEN="a-token-of-the-tests")
    context = browser.new_context()
    page = context.new_page()
    for address in (f"{board.origin}/", f"{board.origin}/?token=wrong-token"):
        answer = page.goto(address)
        assert answer.status == 401 and page.get_by_test_id("run-row").count() == 0
    page.goto(board.address)
    expect(page.get_by_test_id("run-row")).to_have_count(1, timeout=WAIT)
    assert "token" not in page.url
    context.close()


def test_a_foreign_page_can_neither_read_nor_change(serve, browser, tmp_path):
    path = write_run(tmp_path / "runs" / "a")
    board, other = serve(), serve()
    context = browser.new_context()
    page = context.new_page()
    page.goto(board.origin)
    row = page.get_by_test_id("run-row")
    expect(row).to_have_count(1, timeout=WAIT)
    run = row.get_attribute("data-run")
    # The other board stands for any foreign page: the same host, another origin.
    answer = context.request.post(
        f"{board.origin}/api/runs/{run}/labels",
        data={"tags": ["evil"]},
        headers={"Origin": other.origin},
    )
    assert answer.status == 403
    foreign = context.new_page()
    foreign.route(
        "https://evil.example/",
        lambda route: route.fulfill(body="<h1>evil</h1>", content_type="text/html"),
    )
    foreign.goto("https://evil.example/")
    outcome = foreign.evaluate(
        """async (origin) => {
            const results = [];
            const posted = {method: "POST", body: "{}", mode: "no-cors"};
            for (const options of [{}, {mode: "no-cors"}, posted])
                try { results.push(await (await fetch(origin, options)).text()); }
                catch (error) { results.push("blocked"); }
            return results;
        }""",
        f"{board.origin}/api/runs/{run}/labels",
    )
    assert all(one in ("blocked", "") for one in outcome), outcome
    assert not (path / "tags.json").exists()
    context.close()
