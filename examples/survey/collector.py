"""
A collector for the page of a survey
====================================

It serves ``survey.html`` and receives reports, on Starlette, uvicorn and SQLite: ``pip install "skldp[survey]"``. The
folder has the page and its ``protocol.json``, and gets ``reports.sqlite``. Run it with
``python collector.py FOLDER PORT``; it listens on this machine only, so put a web server with HTTPS before it.

- A report is acknowledged after it is on the disk: if the process or the machine dies, nothing that was acknowledged
  is lost. Reports that arrive during a commit share the next one.
- A submission counts once, however often it is sent. Everything that is no report is refused and counted.
- No address, no time and no order of arrival is kept: rows are stored by their random submission id.
"""

import asyncio
import contextlib
import io
import json
import sqlite3
import sys
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.responses import FileResponse, PlainTextResponse
from starlette.routing import Route

from skldp.exceptions import InvalidReportError
from skldp.protocols import Protocol, load_reports

MAX_BYTES = 4096  # of a post; a report of up to 1,000 categories fits
MAX_SECONDS = 10  # for the body of a post to arrive
HEADERS = {"Access-Control-Allow-Origin": "*", "X-Content-Type-Options": "nosniff"}  # pages may be opened from a file
PAGE_HEADERS = {"Content-Security-Policy": "frame-ancestors 'none'", "X-Content-Type-Options": "nosniff"}
SCHEMA = """
CREATE TABLE IF NOT EXISTS reports (submission TEXT PRIMARY KEY, line TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS refused (reason TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
"""

# %%
# Check and store
# ---------------


def connect(folder):
    """Open the database of a folder, whose commits are on the disk when they return."""
    database = sqlite3.connect(Path(folder) / "reports.sqlite", check_same_thread=False)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.executescript(SCHEMA)
    return database


def check(body, protocol):
    """Return submission and line of a post, or None if it is no report under the protocol."""
    if not body.startswith(b"{"):
        return None
    try:
        reports, _ = load_reports(io.BytesIO(body), protocol)
    except InvalidReportError:
        return None
    if len(reports) != 1 or not protocol.check(reports)[0]:
        return None
    sent = json.loads(body)
    return sent["submission"], json.dumps({name: sent[name] for name in ("protocol", "submission", "report")})


def store(database, posts):
    """Store reports and count refusals in one transaction; a post is a submission with its line, or a reason."""
    with database:
        for post in posts:
            reason = post
            if isinstance(post, tuple):
                added = database.execute("INSERT OR IGNORE INTO reports VALUES (?, ?)", post).rowcount
                reason = None if added else "repeated"
            if reason is not None:
                database.execute("INSERT INTO refused VALUES (?, 1) ON CONFLICT DO UPDATE SET n = n + 1", (reason,))


def export(folder, path):
    """Write the reports as JSON lines for load_reports; return how many posts were refused, by reason."""
    with contextlib.closing(connect(folder)) as database, open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line, in database.execute("SELECT line FROM reports"))
        return dict(database.execute("SELECT reason, n FROM refused"))


# %%
# Serve
# -----


async def read_body(request):
    """Return the body of a post, or None if it is too long or too slow."""
    body = b""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(MAX_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_BYTES:
                    return None
            return body


async def write(queue, database):
    """Store what is in the queue, all of it in one transaction, and then acknowledge it."""
    while True:
        batch = [await queue.get()]
        while not queue.empty():
            batch.append(queue.get_nowait())
        try:
            await asyncio.to_thread(store, database, [post for post, _ in batch])
            failure = None
        except sqlite3.Error as error:  # a full disk, for example: nothing of the batch is acknowledged
            failure = error
        for _, done in batch:
            if not done.done():  # its sender may have gone
                done.set_result(failure)


def make_app(folder):
    """Return the application of a folder."""
    folder = Path(folder)
    protocol = Protocol.from_json((folder / "protocol.json").read_text(encoding="utf-8"))
    queue: asyncio.Queue = asyncio.Queue(maxsize=10_000)

    @contextlib.asynccontextmanager
    async def lifespan(app):
        with contextlib.closing(connect(folder)) as database:
            writer = asyncio.create_task(write(queue, database))
            yield
            writer.cancel()

    async def page(request):
        return FileResponse(folder / "survey.html", headers=PAGE_HEADERS)

    async def receive(request):
        body = await read_body(request)
        found = None if body is None else check(body, protocol)
        done = asyncio.get_running_loop().create_future()
        await queue.put((found or ("too long or slow" if body is None else "no report"), done))
        failed = await done is not None
        status = 503 if failed else 200 if found else 413 if body is None else 400
        return PlainTextResponse("stored" if status == 200 else "refused", status, HEADERS)

    return Starlette(routes=[Route("/", page), Route("/reports", receive, methods=["POST"])], lifespan=lifespan)


if __name__ == "__main__":
    uvicorn.run(make_app(sys.argv[1]), host="127.0.0.1", port=int(sys.argv[2]), log_level="warning", access_log=False,
                server_header=False, limit_concurrency=2000)
