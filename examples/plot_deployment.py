"""
From many devices to one posterior
==================================

A simulation calls ``fit(X, y)`` on records that somebody holds. In a deployment nobody holds all records: the
aggregator publishes a protocol, clients randomise their own record on their own device, and only the reports are sent.
Here the clients are another process, which imports only ``skldp.protocols``. """

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from skldp import LDPBayesLinearRegression, PosteriorDisplay
from skldp.privacy import shuffled_epsilon
from skldp.protocols import Aggregate, load_reports

folder = Path(tempfile.mkdtemp())

# %%
# The aggregator publishes
# ------------------------
# Everything in the protocol is public, and chosen before any record is seen: the budget, the length of a record, the
# interval of the response.

model = LDPBayesLinearRegression(epsilon=2.0, data_norm=1.0, bounds_y=(-2, 2))
protocol = model.protocol(n_features=3)
(folder / "protocol.json").write_text(protocol.to_json())
print(f"Protocol {protocol.id}:\n{protocol.to_json()}\n")

# %%
# The clients report
# ------------------
# There are ten thousand clients, all in one process to keep the example short. Each reads the protocol, randomises its
# record once with the operating system's entropy, and sends a row of small integers. The client's side needs only NumPy
# and SciPy.

CLIENTS = """
import sys
from pathlib import Path
import numpy as np
from skldp.protocols import Protocol, save_reports

folder = Path(sys.argv[1])
protocol = Protocol.from_json((folder / "protocol.json").read_text())
rng = np.random.default_rng(0)                       # only invents the records; the noise is not seeded
for day in ("monday", "tuesday"):
    X = rng.normal(scale=0.3, size=(5000, 3))
    y = X @ [1.0, -0.5, 0.0] + 0.2 + rng.normal(scale=0.3, size=5000)
    reports = np.concatenate([protocol.privatize(x, response) for x, response in zip(X, y)])   # one client at a time
    save_reports(folder / f"{day}.npz", reports, protocol)
print("modules that a client did not load:", {"sklearn", "emcee", "pandas"} - set(sys.modules))
"""
done = subprocess.run([sys.executable, "-c", CLIENTS, str(folder)], check=True, capture_output=True, text=True)
print(done.stdout)

# %%
# The aggregator fits
# -------------------
# Reports come from untrusted sources, so every row is checked against the protocol. ``on_invalid="drop"`` drops and
# counts the reports that no honest client could have sent.

reports, found = load_reports(folder / "monday.npz", protocol)
print(f"Monday: {len(reports):,} reports of {reports.shape[1]} integers, "
      f"{(folder / 'monday.npz').stat().st_size / len(reports):.0f} bytes each")
hostile = reports.copy()
hostile[0] = 32_000
aggregate = model.aggregate(hostile, on_invalid="drop")
print(f"With one forged report among them: {aggregate}\n")

# %%
# An aggregate is a small number of sums. It can be stored, and later reports are added to it. The posterior does not
# depend on the order of the additions or on the number of machines.

(folder / "sums.json").write_text(model.aggregate(reports).to_json())
tuesday, _ = load_reports(folder / "tuesday.npz", protocol)
total = Aggregate.from_json((folder / "sums.json").read_text()) + model.aggregate(tuesday)
model.fit_reports(total)
print(f"Posterior from {model.n_reports_:,} reports (truth: coef 1, -0.5, 0; intercept 0.2):\n")
print(model.posterior_.summary(names=["coef", "intercept", "sigma"]), "\n")

# %%
# A trusted shuffler that removes the origin of the reports makes the guarantee stronger, in the central sense.

print(f"Each client paid epsilon = {model.epsilon_:g} locally; shuffled, "
      f"{shuffled_epsilon(model.epsilon_, model.n_reports_, delta=1e-6):.2f} centrally, at delta = 1e-6.")

# %%
# A picture, if matplotlib is installed (``pip install "skldp[plot]"``).

try:
    import matplotlib.pyplot as plt
except ImportError:
    pass
else:
    PosteriorDisplay.from_estimator(model, "coef", truth=np.array([1.0, -0.5, 0.0]))
    plt.show()
