"""The application: addresses, questions and answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any, cast

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from hookloop import HookloopError
from hookloop.runs import make_safe, to_json
from hookloop_board import checkpoints, details, media, predictions, sweeps, timetable
from hookloop_board.access import Access, Guard
from hookloop_board.changing import ask_run, set_labels
from hookloop_board.collection import Collection, Entry, NotFound
from hookloop_board.curves import BadQuestion, curves_csv, curves_view, parse_query
from hookloop_board.events import Events
from hookloop_board.page import page_files
from hookloop_board.run_view import ListAnswer, run_view

LARGEST_BODY = 200_000
"""Bytes of a request that are read."""

PATIENCE = 0.7
"""Seconds of reading metrics after which an answer has what is read so far."""

Answer = Callable[[Request], object]

_log = logging.getLogger("hookloop")


class Json(Response):
    """JSON with NaN and infinities as text; secrets that this process knows are hidden."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        """Return the bytes."""
        return to_json(content).encode("utf-8", "replace")


def make_app(collection: Collection, access: Access, page: Path | None) -> Starlette:
    """Return the application.

    Args:
        collection: The runs that it shows.
        access: What it demands of requests.
        page: The directory of the built page; None for the answers alone.
    """
    board = Board(collection, page)

    @asynccontextmanager
    async def living(app: Starlette) -> AsyncIterator[None]:
        # Before anybody asks: the first look at a thousand runs takes half a second.
        looking = asyncio.create_task(asyncio.to_thread(board.look))
        yield
        board.close()
        looking.cancel()

    app = Starlette(
        routes=board.routes(),
        middleware=[
            Middleware(cast("Any", Guard), access=access),
            Middleware(GZipMiddleware, minimum_size=20_000, compresslevel=1),
        ],
        exception_handlers={Exception: _failed},
        lifespan=living,
    )
    app.state.board = board
    return app


class Board:
    """What the addresses lead to.

    Args:
        collection: The runs.
        page: The directory of the built page.
    """

    def __init__(self, collection: Collection, page: Path | None) -> None:
        self.collection = collection
        self.events = Events(collection)
        self.ending = Event()
        self._runs = ListAnswer(collection)
        self._page = page_files(page) if page is not None else {}

    def look(self) -> None:
        """Read the runs that are there; what goes wrong is told to who asks for them."""
        with suppress(OSError):
            self._runs.bytes()

    def close(self) -> None:
        """End what waits: streams, and questions to runs."""
        self.ending.set()
        self.events.close()

    def routes(self) -> list[Route]:
        """Return the addresses."""
        run = "/api/runs/{run}"
        reads: dict[str, Answer] = {
            "/api/runs": self._list,
            run: self._run,
            "/api/curves": self._curves,
            f"{run}/config": lambda one: details.config_view(self._entry(one), self._other(one)),
            f"{run}/environment": lambda one: details.environment_view(
                self._entry(one), self._other(one)
            ),
            f"{run}/log": self._log,
            f"{run}/hooks": lambda one: timetable.hooks_view(self._entry(one)),
            f"{run}/checkpoints": lambda one: checkpoints.checkpoints_view(self._entry(one)),
            f"{run}/media": lambda one: media.media_view(self._entry(one)),
            f"{run}/media/{{medium}}": self._medium,
            f"{run}/predictions": self._predictions,
            "/api/sweeps": lambda _: sweeps.sweeps_view(self.collection),
        }
        changes: dict[str, Callable[[Entry, Mapping[str, object]], object]] = {
            f"{run}/checkpoints/verify": lambda entry, body: checkpoints.verify(
                entry, body.get("name")
            ),
            f"{run}/ask": lambda entry, body: ask_run(entry, body, self.ending.is_set),
            f"{run}/labels": set_labels,
        }
        return [
            *(Route(path, _answering(function)) for path, function in reads.items()),
            *(
                Route(path, self._changing(function), methods=["POST"])
                for path, function in changes.items()
            ),
            Route("/api/curves.csv", self._csv),
            Route("/api/events", self._events),
            Route("/", self._file),
            Route("/{path:path}", self._file),
        ]

    # --- reading ----------------------------------------------------------------------------------

    def _entry(self, request: Request) -> Entry:
        return self.collection.entry(request.path_params["run"])

    def _other(self, request: Request) -> Entry | None:
        number = request.query_params.get("against")
        return self.collection.entry(number) if number else None

    def _list(self, request: Request) -> Response:
        return _either(request, *self._runs.bytes(), {"content-type": Json.media_type})

    def _run(self, request: Request) -> object:
        return run_view(self.collection, self._entry(request), PATIENCE)

    def _curves(self, request: Request) -> object:
        return curves_view(self.collection, parse_query(self.collection, _query(request)), PATIENCE)

    def _log(self, request: Request) -> object:
        before = _number(request, "before", None)
        after = _number(request, "after", None)
        limit = _number(request, "limit", None) or details.LOG_PART
        return details.log_view(self._entry(request), before, limit, after)

    def _medium(self, request: Request) -> object:
        entry = self._entry(request)
        found = media.medium(entry, request.path_params["medium"])
        if found.kind != "image":
            return media.read_medium(entry, found)
        data, kind = media.read_image(entry, found)
        return Response(data, media_type=kind)

    def _predictions(self, request: Request) -> object:
        given = request.query_params
        return predictions.predictions_view(
            self._entry(request),
            given.get("file") or None,
            _number(request, "offset", 0) or 0,
            _number(request, "limit", 100) or 100,
            given.get("sort") or None,
            given.get("descending") in ("1", "true"),
        )

    async def _csv(self, request: Request) -> Response:
        try:
            query = await run_in_threadpool(parse_query, self.collection, _query(request))
        except HookloopError as error:
            return _rejected(error)
        headers = {"content-disposition": 'attachment; filename="curves.csv"'}
        return StreamingResponse(
            curves_csv(self.collection, query), media_type="text/csv", headers=headers
        )

    async def _events(self, request: Request) -> Response:
        if self.events.is_full:  # The page tries again, each time after a longer while.
            return JSONResponse({"error": "Too many pages are open."}, 503)
        return StreamingResponse(self.events.stream(), media_type="text/event-stream")

    async def _file(self, request: Request) -> Response:
        name = request.path_params.get("path") or "index.html"
        found = self._page.get(name)
        if found is None:
            return JSONResponse({"error": "There is nothing at this address."}, 404)
        return _either(request, *found)

    # --- changing ---------------------------------------------------------------------------------

    def _changing(
        self, function: Callable[[Entry, Mapping[str, object]], object]
    ) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            try:
                body = await _body(request)
                entry = await run_in_threadpool(self._entry, request)
                changed = await run_in_threadpool(function, entry, body)
                await run_in_threadpool(self.collection.look_again, entry)
                return Json(changed)
            except (HookloopError, ValueError, OSError) as error:
                return _rejected(error)

        return answer


def _either(request: Request, data: bytes, small: bytes, headers: Mapping[str, str]) -> Response:
    """Return an answer that is there in full and compressed."""
    if small and "gzip" in request.headers.get("accept-encoding", ""):
        more = {"content-encoding": "gzip", "vary": "accept-encoding"}
        return Response(small, headers={**headers, **more})
    return Response(data, headers=headers)


def _answering(function: Answer) -> Callable[[Request], Response]:
    """Return an endpoint, which Starlette calls in a thread, because it reads files."""

    def answer(request: Request) -> Response:
        try:
            found = function(request)
        except (HookloopError, ValueError, OSError) as error:
            return _rejected(error)
        return found if isinstance(found, Response) else Json(found)

    return answer


def _rejected(error: Exception) -> Response:
    status = 400
    if isinstance(error, NotFound | FileNotFoundError):
        status = 404
    elif isinstance(error, TooLarge):
        status = 413
    elif isinstance(error, OSError) and not isinstance(error, HookloopError):
        status = 404
    # The text of an OSError has a path in it.
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return Json({"error": make_safe(text)[:1000] or type(error).__name__}, status)


async def _failed(request: Request, error: Exception) -> Response:
    _log.error("The board failed to answer %s", request.url.path, exc_info=error)
    return JSONResponse({"error": f"The board failed: {type(error).__name__}."}, 500)


class TooLarge(HookloopError):
    """A request that is too large."""


async def _body(request: Request) -> Mapping[str, object]:
    """Read the JSON of a request."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise BadQuestion("The request must be JSON, and say so in its Content-Type.")
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > LARGEST_BODY:
            raise TooLarge(f"The request has more than {LARGEST_BODY:,} bytes.")
    from hookloop.runs import parse_json

    found = parse_json(data)
    if not isinstance(found, dict):
        raise BadQuestion("The request must be a JSON object.")
    return found


def _query(request: Request) -> dict[str, list[str]]:
    return {name: request.query_params.getlist(name) for name in request.query_params}


def _number(request: Request, name: str, default: int | None) -> int | None:
    text = request.query_params.get(name)
    if not text:
        return default
    try:
        number = int(text)
    except ValueError as error:
        raise BadQuestion(f"{name} must be a whole number.") from error
    return min(max(number, 0), 1 << 53)
