"""The collector of the example as a process."""

import contextlib
import pathlib
import socket
import subprocess
import sys
import time

from skldp.protocols import ValueProtocol

PATH = pathlib.Path(__file__).parents[2] / "examples" / "survey" / "collector.py"
PROTOCOL = ValueProtocol(epsilon=1.0, bounds=(0, 10))


def publish(folder):
    """Write the page and the protocol, which a collector reads."""
    PROTOCOL.to_html(folder / "survey.html", submit="/reports")
    (folder / "protocol.json").write_text(PROTOCOL.to_json())


@contextlib.contextmanager
def running(folder):
    """Start a collector on a free port of this machine; give its process and port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, PATH, folder, str(port)], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    try:
        for _ in range(600):
            with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
                break
            assert process.poll() is None, process.stdout.read()
            time.sleep(0.05)
        yield process, port
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
