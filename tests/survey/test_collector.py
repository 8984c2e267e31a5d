"""The collector of the example: what it stores, refuses and counts, also if it is killed."""

import asyncio
import contextlib
import http.client
import importlib.util
import json
import os
import signal
import sqlite3
import threading

import pytest

from skldp.protocols import load_reports
from tests.survey.collecting import PATH, PROTOCOL, publish, running

pytest.importorskip("starlette", reason="the collector needs starlette and uvicorn")
pytest.importorskip("uvicorn", reason="the collector needs starlette and uvicorn")


@pytest.fixture(scope="module")
def collector():
    """The module of the collector."""
    spec = importlib.util.spec_from_file_location("collector", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path):
    publish(tmp_path)
    return tmp_path


@contextlib.contextmanager
def connected(port):
    """A connection that is closed at the end, also if its response was not read."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        yield connection


def post(connection, body):
    connection.request("POST", "/reports", body)
    response = connection.getresponse()
    response.read()
    return response.status


def line(number, report=3):
    return json.dumps({"protocol": PROTOCOL.id, "submission": f"{number:032x}", "report": [report]})


REFUSED = {
    "empty": b"", "text": b"hello", "archive": b"PK\x03\x04" + b"x" * 50, "zero byte": b"{\x00}", "list": "[]",
    "two lines": f"{line(1)}\n{line(2)}", "CSV": f"protocol,submission,report\n{PROTOCOL.id},{1:032x},[3]",
    "impossible": line(1, 5000), "other protocol": line(1).replace(PROTOCOL.id, "0" * 32),
    "float": line(1).replace("[3]", "[3.0]"),
}


def test_reports_are_stored_once_and_everything_else_is_refused_and_counted(folder, collector):
    with running(folder) as (process, port), connected(port) as connection:
        assert [post(connection, line(number)) for number in (1, 2, 1, 1)] == [200] * 4
        assert {name: post(connection, body) for name, body in REFUSED.items()} == dict.fromkeys(REFUSED, 400)
        connection.request("GET", "/")
        response = connection.getresponse()
        assert response.read() == (folder / "survey.html").read_bytes()
        assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
        assert post(connection, b"{" * 5000) == 413
        connection.close()
        process.terminate()
        assert process.wait(10) == 0 or process.returncode == -signal.SIGTERM
        assert "127.0.0.1" not in process.stdout.read(), "no address is logged"
    refused = collector.export(folder, folder / "reports.jsonl")
    assert refused == {"repeated": 2, "no report": len(REFUSED), "too long or slow": 1}
    reports, _ = load_reports(folder / "reports.jsonl", PROTOCOL)
    assert reports.tolist() == [[3], [3]]


def test_a_killed_collector_loses_nothing_that_it_acknowledged(folder, collector):
    acknowledged, lock, n_people, victim = set(), threading.Lock(), 400, []

    def browser(port, numbers):
        """Post until the collector is gone; whoever gets the hundredth answer kills it."""
        with contextlib.suppress(OSError, http.client.HTTPException), connected(port) as connection:
            for number in numbers:
                if post(connection, line(number)) == 200:
                    with lock:
                        acknowledged.add(number)
                        if len(acknowledged) == 100 and victim:
                            os.kill(victim.pop(), signal.SIGKILL)

    def run(port, numbers):
        threads = [threading.Thread(target=browser, args=(port, numbers[start::4])) for start in range(4)]
        for thread in threads:
            thread.start()
        return threads

    with running(folder) as (process, port):
        victim.append(process.pid)
        for thread in run(port, range(n_people)):
            thread.join()
    before = set(acknowledged)
    assert 100 <= len(before) < n_people, "it was killed in between"
    with contextlib.closing(sqlite3.connect(folder / "reports.sqlite")) as database:
        stored = {int(name, 16) for name, in database.execute("SELECT submission FROM reports")}
    assert before <= stored
    with running(folder) as (process, port):  # everybody sends again, who has an answer and who has none
        for thread in run(port, range(n_people)):
            thread.join()
    assert acknowledged == set(range(n_people))
    collector.export(folder, folder / "reports.jsonl")
    reports, _ = load_reports(folder / "reports.jsonl", PROTOCOL)
    assert len(reports) == n_people and PROTOCOL.check(reports).all()


def test_a_failed_commit_is_not_acknowledged(collector, monkeypatch):
    calls = []

    def store(database, posts):
        calls.append(posts)
        if len(calls) == 1:
            raise sqlite3.OperationalError("database or disk is full")

    async def answers():
        queue, loop = asyncio.Queue(), asyncio.get_running_loop()
        writer = loop.create_task(collector.write(queue, None))
        found = []
        for post in ("a", "b"):
            done = loop.create_future()
            queue.put_nowait((post, done))
            found.append(await done)
        writer.cancel()
        return found

    monkeypatch.setattr(collector, "store", store)
    failure, success = asyncio.run(answers())
    assert isinstance(failure, sqlite3.OperationalError) and success is None and calls == [["a"], ["b"]]
