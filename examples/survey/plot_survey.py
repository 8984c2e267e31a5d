"""
A private survey, from the page to the posterior
================================================

A researcher asks how long people sleep before work days and before free days. Nobody is asked to trust the researcher:
a page draws the noise on each person's own device, and only the noisy report is sent. This script writes the page,
starts the collector of :ref:`sphx_glr_auto_examples_survey_collector.py` on this machine, lets 2,000 simulated browsers
answer, and fits what arrives. It needs ``pip install "skldp[survey]"``. """

# sphinx_gallery_thumbnail_path = "_static/survey_page.png"

import http.client
import json
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from skldp import LDPGaussian, PosteriorDisplay
from skldp.protocols import load_reports

HERE = Path(sys.argv[0]).parent  # where this script and the collector are
folder = Path(tempfile.mkdtemp())

# %%
# Publish the page
# ----------------
# The bounds and the budget are public. With two columns and this budget, a coin on each device chooses one of the two
# answers, which gets the whole budget.

model = LDPGaussian(epsilon=2.0, bounds=(3, 13), random_state=0)
protocol = model.protocol(n_features=2)
questions = [("How long do you usually sleep before a work day?", "hours"),
             ("How long do you usually sleep before a free day?", "hours")]
protocol.to_html(folder / "survey.html", "How long do we sleep?", questions, submit="/reports")
(folder / "protocol.json").write_text(protocol.to_json(), encoding="utf-8")
print(f"The page has {(folder / 'survey.html').stat().st_size:,} bytes, and needs nothing else.")

# %%
# On a phone it looks like this, before and after the noise is drawn:
#
# .. image:: /_static/survey_page.png
#    :alt: The page on a phone: the guarantee in plain words, two questions, and the report that will be sent.
#
# Collect
# -------
# The collector is another process. It could run anywhere; here it listens on a free port of this machine.

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
collector = subprocess.Popen([sys.executable, HERE / "collector.py", folder, str(port)])
for _ in range(300):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        break
    except ConnectionRefusedError:
        time.sleep(0.1)

# %%
# Each simulated browser has its own noise, from the operating system, and its own random submission id. From the same
# random words the page draws the same report as ``protocol.privatize``. Every tenth browser loses the connection after
# its post and sends the same again, and somebody posts nonsense.

rng = np.random.default_rng(0)  # only invents the answers
work = rng.normal(7.0, 1.1, size=2000)
answers = np.column_stack([work, work + rng.normal(1.2, 0.9, size=2000)])


def browsers(rows):
    """Post the reports of some people, one after the other."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for row in rows:
        report = protocol.privatize(row)[0].tolist()
        body = json.dumps({"protocol": protocol.id, "submission": secrets.token_hex(16), "report": report})
        for _ in range(1 + (secrets.randbelow(10) == 0)):
            connection.request("POST", "/reports", body)
            assert connection.getresponse().read() == b"stored"
    connection.request("POST", "/reports", '{"report": [1000000]}')
    assert connection.getresponse().read() == b"refused"


start = time.perf_counter()
with ThreadPoolExecutor(8) as pool:
    list(pool.map(browsers, np.array_split(answers, 8)))
print(f"2,000 people answered in {time.perf_counter() - start:.1f} s.")
collector.terminate()
_ = collector.wait()

# %%
# Fit
# ---
# The collector's rows become JSON lines. ``load_reports`` checks each line against the protocol.

sys.path.insert(0, str(HERE))
from collector import export  # noqa: E402

refused = export(folder, folder / "reports.jsonl")
print(f"Refused by the collector: {refused}")
reports, _ = load_reports(folder / "reports.jsonl", protocol)
model.fit_reports(reports, on_invalid="drop")
print(f"{model.n_reports_:,} reports, {model.n_rejected_} dropped\n")
print(model.posterior_.summary(), "\n")

# %%
# People sleep longer before free days:

draws = model.sample_posterior(4000, random_state=0)["mean"]
low, high = np.quantile(draws[:, 1] - draws[:, 0], [0.05, 0.95])
print(f"longer by {low:.2f} to {high:.2f} hours with 90 % probability; of the answers: "
      f"{np.diff(answers.mean(axis=0))[0]:.2f}")

# %%
# A picture, if matplotlib is installed (``pip install "skldp[plot]"``).

try:
    import matplotlib.pyplot as plt
except ImportError:
    pass
else:
    PosteriorDisplay.from_estimator(model, "mean", truth=answers.mean(axis=0))
    plt.show()
