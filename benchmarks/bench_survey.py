"""Surveys in browsers: size of the page, time of a report, and what the example collector holds, also if it is killed.

Run with ``python benchmarks/bench_survey.py``; ``--quick`` sends 400 posts instead of 20,000. All connections are to
127.0.0.1. The posts are honest reports, copies of earlier submissions and hostile texts. Half-way the collector is
killed with SIGKILL and started again, and every post without an answer is sent again, as a page does. Times of reports
are measured in Chromium (``chromium``, ``chromium-driver`` and selenium), if it is installed.
"""

import argparse
import asyncio
import contextlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _timing import print_header, print_table

from skldp.protocols import CategoryProtocol, SampledValueProtocol, ValueProtocol, load_reports

COLLECTOR = Path(__file__).parents[1] / "examples" / "survey" / "collector.py"
N_CONNECTIONS = 32
SHARES = {"honest": 0.8, "repeated": 0.1, "no report": 0.09, "too long or slow": 0.01}
PROTOCOLS = {
    "a value": ValueProtocol(epsilon=1.0, bounds=(120, 220)),
    "one of ten values": SampledValueProtocol(epsilon=1.0, bounds=(0, 100), n_features=10),
    "ten values": ValueProtocol(epsilon=10.0, bounds=(0, 100), n_features=10),
    "5 categories, subset": CategoryProtocol(categories=tuple("abcde")),
    "5 categories, randomised response": CategoryProtocol(categories=tuple("abcde"), mechanism="rr"),
    "1,000 categories, subset": CategoryProtocol(categories=tuple(range(1000))),
    "1,000 categories, unary encoding": CategoryProtocol(categories=tuple(range(1000)), mechanism="oue"),
}
TIMES = """
const survey = skldp.read(document.getElementById("survey").textContent), times = [];
const answers = survey.questions.map((question) => (question.bounds ? "31.25" : 0));
for (let i = 0; i < 200; i++) {
  const start = performance.now();
  skldp.privatize(survey, answers);
  times.push(performance.now() - start);
}
return [times[0], times.sort((one, other) => one - other)[100], times[199]];
"""


def load_collector():
    """Return the collector as a module, or None if its dependencies are not installed."""
    spec = importlib.util.spec_from_file_location("collector", COLLECTOR)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ImportError:
        return None
    return module


def print_pages(folder):
    """Print the size of pages, and the time of a report in Chromium."""
    browser = open_browser(folder)
    rows = []
    for name, protocol in PROTOCOLS.items():
        path = folder / "survey.html"
        protocol.to_html(path, "Survey", submit="https://example.org/reports")
        times = [float("nan")] * 3
        if browser is not None:
            browser.get(path.as_uri())
            times = browser.execute_script(TIMES)
        rows.append([name, path.stat().st_size / 1000, *times])
    if browser is not None:
        browser.quit()
    print("Size of the page, and time of a report in Chromium: the first, the median and the largest of 200")
    print_table(["protocol", "kB", "first ms", "median ms", "largest ms"], rows)


def open_browser(folder):
    """Return headless Chromium, or None if it is not installed."""
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        return None
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        return None
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for option in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
                   "--disable-background-networking", "--disable-component-update",
                   f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(option)
    return webdriver.Chrome(options=options, service=Service(driver))


def make_posts(protocol, n_posts, rng):
    """Return pairs of a kind and a body."""
    kinds = rng.choice(list(SHARES), p=list(SHARES.values()), size=n_posts).tolist()
    kinds[0] = "honest"
    reports = protocol.privatize(rng.normal(170, 10, size=n_posts)).tolist()
    hostile = ["hello", "{}", "[1]", json.dumps({"protocol": protocol.id, "submission": "0" * 32, "report": [10**9]})]
    bodies, honest = [], []
    for kind, report in zip(kinds, reports):
        line = json.dumps({"protocol": protocol.id, "submission": rng.bytes(16).hex(), "report": report})
        body = {"honest": line, "repeated": honest[rng.integers(len(honest))] if honest else line,
                "no report": hostile[rng.integers(len(hostile))], "too long or slow": "{" * 6000}[kind]
        if kind == "honest":
            honest.append(line)
        bodies.append((kind, body.encode()))
    return bodies


class Load:
    """Sends posts over several connections until each has an answer, or the collector is gone."""

    def __init__(self, port, posts):
        self.port, self.posts, self.answered = port, posts, {}

    async def run(self, places, kill_at=None, kill=None):
        """Send the posts at some places; kill the collector once a number of posts is answered."""
        waiting = iter(places)
        senders = [self._send(waiting) for _ in range(N_CONNECTIONS)]
        await asyncio.gather(*senders, *([self._kill(kill_at, kill)] if kill else []))

    async def _kill(self, kill_at, kill):
        while len(self.answered) < kill_at:
            await asyncio.sleep(0.002)
        kill()

    async def _send(self, waiting):
        reader = writer = None
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            for place in waiting:
                if writer is None:
                    reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                body = self.posts[place][1]
                writer.write(b"POST /reports HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n"
                             b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
                self.answered[place] = int(head.split(b" ")[1])
                if b"connection: close" in head.lower():
                    writer.close()
                    writer = None
        if writer is not None:
            writer.close()


def start(folder, port):
    """Start a collector, and return its process once it listens."""
    process = subprocess.Popen([sys.executable, COLLECTOR, folder, str(port)])
    for _ in range(600):
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
            return process
        time.sleep(0.05)
    raise RuntimeError("The collector did not start.")


def run_collector(folder, n_posts, collector):
    """Send posts with a kill in between, and print what was answered and what is stored."""
    protocol, rng = PROTOCOLS["a value"], np.random.default_rng(0)
    protocol.to_html(folder / "survey.html", submit="/reports")
    (folder / "protocol.json").write_text(protocol.to_json(), encoding="utf-8")
    posts = make_posts(protocol, n_posts, rng)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    load = Load(port, posts)
    process = start(folder, port)
    begin = time.perf_counter()
    asyncio.run(load.run(range(n_posts), n_posts // 2, lambda: os.kill(process.pid, signal.SIGKILL)))
    seconds, n_first, process_one = time.perf_counter() - begin, len(load.answered), process
    process_one.wait()
    answered = {posts[place][1] for place, status in load.answered.items() if status == 200}
    process = start(folder, port)
    begin = time.perf_counter()
    asyncio.run(load.run([place for place in range(n_posts) if place not in load.answered]))
    seconds += time.perf_counter() - begin
    process.terminate()
    process.wait()
    report_collector(folder, collector, protocol, load, n_first, answered, seconds)


def report_collector(folder, collector, protocol, load, n_first, answered, seconds):
    """Print the rate, and compare the answers with the database."""
    refused = collector.export(folder, folder / "reports.jsonl")
    stored = {json.loads(line)["submission"] for line in (folder / "reports.jsonl").read_text().splitlines()}
    reports, _ = load_reports(folder / "reports.jsonl", protocol)
    expected = {"honest": 200, "repeated": 200, "no report": 400, "too long or slow": 413}
    wrong = sum(load.answered.get(place) != expected[kind] for place, (kind, _) in enumerate(load.posts))
    sent = {kind: sum(one == kind for one, _ in load.posts) for kind in SHARES}
    lost = sum(json.loads(body)["submission"] not in stored for body in answered)
    print(f"{len(load.posts):,} posts over {N_CONNECTIONS} connections, {len(load.posts) / seconds:.0f} a second; "
          f"killed after {n_first:,} answers and started again")
    print_table(["", "number"], [[name, str(number)] for name, number in [
        ["posts", len(load.posts)], ["posts with a wrong answer, or none", wrong],
        ["distinct honest submissions", sent["honest"]], ["stored", len(stored)],
        ["valid in the file", int(protocol.check(reports).sum())],
        ["acknowledged before the kill, and lost", lost], ["stored twice", len(reports) - len(stored)],
        *[[f"sent: {kind}; counted", f"{sent[kind]}; {refused.get(kind, 0)}"] for kind in list(SHARES)[1:]],
    ]])
    print("A post whose answer was lost by the kill is sent again, so that up to 32 more may be counted than sent.")


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="400 posts")
    n_posts = 400 if parser.parse_args().quick else 20_000
    print_header("Surveys in browsers", "starlette", "uvicorn", "selenium", seed=0)
    folder = Path(tempfile.mkdtemp())
    print_pages(folder)
    collector = load_collector()
    if collector is None:
        print('The collector is left out: pip install "skldp[survey]".')
    else:
        run_collector(folder, n_posts, collector)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
