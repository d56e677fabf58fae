"""One HTML file with some runs in it, which opens without a server."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from hookloop import HookloopError
from hookloop.runs import to_json, write_bytes
from hookloop_board import checkpoints, details, media, predictions, sweeps, timetable
from hookloop_board.collection import Collection, Entry
from hookloop_board.curves import AXES, Query, curves_view
from hookloop_board.run_view import list_view, run_view

POINTS = 2000
MOST_MEDIA = 30_000_000
"""Bytes of pictures, texts and tables that a file holds; the newest of each name come first."""

LARGEST = 150_000_000
"""A larger file would not open in a browser."""

_SCRIPT = re.compile(r"<script\b[^>]*\bsrc=\"\./?([^\"]+)\"[^>]*></script>")
_STYLE = re.compile(r"<link\b[^>]*\bhref=\"\./?([^\"]+\.css)\"[^>]*>")
_CHARSET = re.compile(r"<meta\s+charset=[^>]*>")
_LINKS = re.compile(r"<link\b[^>]*\brel=\"(?:modulepreload|preload|icon)\"[^>]*>")
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def export_page(roots: Sequence[Path], page: Path, to: Path) -> tuple[int, int]:
    """Write the runs in some directories to a file; return how many, and how large it is.

    Raises:
        HookloopError: If there is no run, or they are too much for one file.
    """
    collection = Collection(roots)
    count = len(collection.entries())
    if not count:
        raise HookloopError(f"There is no run in {', '.join(repr(str(one)) for one in roots)}.")
    if not to.parent.is_dir():
        raise HookloopError(f"There is no directory '{to.parent}' to write '{to.name}' into.")
    data = to_json(
        {
            "exported": datetime.now(UTC).isoformat(timespec="seconds"),
            "answers": answers(collection),
        }
    )
    whole = inline(page, data).encode("utf-8", "replace")
    if len(whole) > LARGEST:
        raise HookloopError(
            f"These runs make a file of {len(whole) / 1e6:,.0f} MB, which no browser opens: "
            "export fewer."
        )
    write_bytes(to, whole)
    return count, len(whole)


def answers(collection: Collection) -> dict[str, object]:
    """Return what a server would answer, by address."""
    found: dict[str, object] = {
        "/api/runs": list_view(collection, can_change=False),
        "/api/sweeps": sweeps.sweeps_view(collection),
    }
    room = MOST_MEDIA
    for entry in collection.entries().values():
        home = f"/api/runs/{entry.id}"
        found[home] = run_view(collection, entry)
        views = {
            "config": lambda one: details.config_view(one, None),
            "environment": lambda one: details.environment_view(one, None),
            "log": lambda one: details.log_view(one, None, details.LOG_PART),
            "hooks": timetable.hooks_view,
            "checkpoints": checkpoints.checkpoints_view,
            "media": media.media_view,
            "predictions": predictions.predictions_view,
        }
        for name, view in views.items():
            try:
                found[f"{home}/{name}"] = view(entry)
            except (OSError, ValueError) as error:
                found[f"{home}/{name}"] = {"error": str(error)}
        found |= _curves(collection, entry)
        for number, shown, size in _media(entry, room):
            found[f"{home}/media/{number}"] = shown
            room -= size
    return found


def _curves(collection: Collection, entry: Entry) -> Iterator[tuple[str, object]]:
    for name in list(collection.metrics(entry).series):
        for axis in AXES:
            query = Query([entry], [name], axis, points=POINTS)
            address = f"/api/curves?run={entry.id}&metric={name}&axis={axis}"
            yield address, curves_view(collection, query)


def _media(entry: Entry, room: int) -> Iterator[tuple[str, object, int]]:
    """Yield media until there is no room: of each name the newest first, then those before."""
    by_name: dict[tuple[str, str], list[media.Medium]] = {}
    for one in sorted(media.media_of(entry), key=lambda one: -one.iter):
        by_name.setdefault((one.kind, one.name), []).append(one)
    ordered = sorted(
        ((age, one) for several in by_name.values() for age, one in enumerate(several)),
        key=lambda pair: pair[0],
    )
    for _, one in ordered:
        try:
            if one.kind == "image":
                data, kind = media.read_image(entry, one)
                shown: object = f"data:{kind};base64,{base64.b64encode(data).decode()}"
                size = len(data) * 4 // 3
            else:
                shown = media.read_medium(entry, one)
                size = len(to_json(shown))
        except (OSError, ValueError, HookloopError):
            continue
        if size > room:
            return
        room -= size
        yield one.id, shown, size


def inline(page: Path, data: str) -> str:
    """Return the page with its scripts and styles in it, and the data as text that never runs."""
    html = (page / "index.html").read_text(encoding="utf-8")
    html = _LINKS.sub("", html)
    styles = [(page / name).read_text(encoding="utf-8") for name in _STYLE.findall(html)]
    scripts = [(page / name).read_text(encoding="utf-8") for name in _SCRIPT.findall(html)]
    if not scripts:
        raise HookloopError(f"'{page / 'index.html'}' names no script: build the page again.")
    html = _STYLE.sub("", _SCRIPT.sub("", html))
    # `</script>` inside a script would end it; in JavaScript the backslash means nothing there.
    scripts = [re.sub(r"</(?=script)", r"<\\/", text, flags=re.IGNORECASE) for text in scripts]
    scripts = [re.sub(r"<!--", r"<\\!--", text) for text in scripts]
    policy = (
        f"default-src 'none'; script-src {_hashes(scripts)}; style-src {_hashes(styles)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    head += "".join(f"<style>{text}</style>" for text in styles)
    body = f'<script type="application/json" id="board-data">{escape(data)}</script>'
    body += "".join(f'<script type="module">{text}</script>' for text in scripts)
    # Behind the encoding, which has to come early. Not by re.sub: the text has backslashes.
    place = _CHARSET.search(html) or re.search("<head>", html)
    at = place.end() if place is not None else 0
    html = f"{html[:at]}{head}{html[at:]}"
    before, end, after = html.rpartition("</body>")
    return f"{before}{body}{end}{after}"


def escape(text: str) -> str:
    r"""Return JSON that is safe within a script element.

    >>> escape('{"a": "</script>"}')
    '{"a": "\\u003c/script\\u003e"}'
    """
    return re.sub("[<>&\u2028\u2029]", lambda found: _UNSAFE[found[0]], text)


def _hashes(texts: Sequence[str]) -> str:
    sums = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in texts]
    return " ".join(f"'sha256-{one}'" for one in sums) or "'none'"
