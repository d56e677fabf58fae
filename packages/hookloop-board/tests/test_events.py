"""What open pages are told."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

from board_runs import record, write_run
from hookloop_board import events as module
from hookloop_board.collection import Collection
from hookloop_board.events import Events


def run(work):
    """Run in a thread: a browser of other tests may have a loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


async def next_event(stream, kind):
    while True:
        text = await asyncio.wait_for(anext(stream), 20)
        if text.startswith(f"event: {kind}\n"):
            return json.loads(text.split("data: ", 1)[1])


def test_every_page_is_told_what_has_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "EVERY", 0.05)
    path = write_run(tmp_path / "a")

    async def watch():
        events = Events(Collection([tmp_path]))
        pages = [events.stream(), events.stream()]
        for page in pages:
            assert (await anext(page)).startswith("retry")
            # Only now does it read what it shows: whatever changes from here on is told.
            assert await next_event(page, "watching") == {}
        with (path / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(record(110, **{"train/loss": 0.1, "lr": 1})) + "\n")
        for page in pages:
            (number,) = (await next_event(page, "runs"))["changed"]
            told = await next_event(page, "curves")
            assert told == {"run": number, "metrics": ["train/loss", "lr"], "iters": 110}
        write_run(tmp_path / "b")
        assert len((await next_event(pages[0], "runs"))["changed"]) == 1
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
        assert (await next_event(pages[0], "runs"))["gone"] == [number]
        events.close()
        for page in pages:  # They end, instead of waiting.
            async for _ in page:
                pass

    run(asyncio.wait_for(watch(), 60))


def test_nothing_is_watched_when_no_page_is_open(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "EVERY", 0.01)

    async def watch():
        events = Events(Collection([tmp_path]))
        page = events.stream()
        await anext(page)
        await page.aclose()
        await asyncio.wait_for(events._task, 20)

    run(watch())


def test_the_number_of_pages_is_limited(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_PAGES", 0)

    async def watch():
        return [text async for text in Events(Collection([tmp_path])).stream()]

    assert run(watch()) == []


def test_a_page_that_does_not_read_does_not_hold_up_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_WAITING", 1)
    monkeypatch.setattr(module, "EVERY", 0.02)
    path = write_run(tmp_path / "a")

    async def watch():
        events = Events(Collection([tmp_path]))
        slow = events.stream()
        await next_event(slow, "watching")
        for number in range(5):
            await asyncio.sleep(0.1)
            (path / "tags.json").write_text(json.dumps({"tags": [f"t{number}"]}))
        events.close()
        assert [text async for text in slow] == []

    run(asyncio.wait_for(watch(), 30))
