"""
People with different budgets
=============================

Some people want more privacy than others. Here half of the clients spend epsilon = 0.5 and half spend 2, and one
posterior uses both: the likelihood of each report includes its own noise.
"""

import numpy as np
from sklearn.base import clone

from skldp import LDPHistogram

# %%
# Answers to a question with six possible answers, and each client's budget. The budgets are public, the answers are
# private.

truth = np.array([0.35, 0.25, 0.18, 0.12, 0.07, 0.03])
rng = np.random.default_rng(1)
answers = rng.choice(6, p=truth, size=(8000, 1))
budgets = np.where(np.arange(8000) < 4000, 0.5, 2.0)

model = LDPHistogram(categories=range(6), random_state=0)
fits = {
    "careful half, epsilon 0.5": clone(model).fit(answers[:4000], sample_epsilon=budgets[:4000]),
    "generous half, epsilon 2": clone(model).fit(answers[4000:], sample_epsilon=budgets[4000:]),
    "both": clone(model).fit(answers, sample_epsilon=budgets),
}
print("cohort                      mean width of the 90 % intervals   covered   paid at most")
for name, fit in fits.items():
    ends = fit.posterior_.interval(0.9)["frequencies"]
    inside = np.sum((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
    print(f"{name:27} {np.mean(ends[:, 1] - ends[:, 0]):32.4f}    {inside} of 6   epsilon = {fit.epsilon_:g}")

# %%
# The same in a deployment: each cohort has its own protocol, and aggregates can be added if their protocols differ only
# in the budget.

parts = []
for epsilon, rows in ((0.5, slice(0, 4000)), (2.0, slice(4000, None))):
    cohort = clone(model).set_params(epsilon=epsilon)
    parts.append(cohort.aggregate(cohort.privatize(answers[rows])))
by_hand = clone(model).fit_reports(sum(parts))
print(f"\n{sum(parts)}")
print("the same posterior:", np.array_equal(by_hand.frequencies_, fits["both"].frequencies_))

# %%
# A picture, if matplotlib is installed (``pip install "skldp[plot]"``).

try:
    import matplotlib.pyplot as plt
except ImportError:
    pass
else:
    figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
    for shift, (name, fit) in zip((-0.2, 0.0, 0.2), fits.items()):
        low, high = fit.posterior_.interval(0.9)["frequencies"].T
        ax.errorbar(np.arange(6) + shift, fit.frequencies_, [fit.frequencies_ - low, high - fit.frequencies_],
                    fmt="o", capsize=3, label=name)
    ax.hlines(truth, np.arange(6) - 0.35, np.arange(6) + 0.35, color="black", linewidth=1, label="truth")
    ax.set(xlabel="answer", ylabel="frequency, with 90 % interval")
    ax.legend()
    plt.show()
