"""
Which categories are most frequent, and how certain is that?
============================================================

Ten thousand people each have a favourite kind of music. Each sends a noisy report, and we estimate how common each kind
is. A list of estimates would not show how large the noise is. A posterior shows which ranks are certain and which are
not.
"""

import numpy as np

from skldp import LDPHistogram, PosteriorDisplay, project_on_simplex

# %%
# The list of categories is public. The category of each person is private.

genres = ["pop", "rock", "hip hop", "country", "classical", "jazz", "metal", "folk", "blues", "reggae", "opera",
          "polka"]
truth = np.array([0.22, 0.18, 0.16, 0.12, 0.09, 0.07, 0.05, 0.04, 0.03, 0.02, 0.015, 0.005])
favourites = np.random.default_rng(0).choice(genres, p=truth, size=(10_000, 1))

model = LDPHistogram(epsilon=0.5, categories=genres, random_state=0).fit(favourites)
print(f"{model.n_reports_:,} reports at epsilon = {model.epsilon_:g}, by {model.mechanism_} selection.\n")

# %%
# The textbook estimate is unbiased, but some of its frequencies may be negative. The usual correction moves it to the
# nearest point of the simplex, which sets small categories to exactly zero and gives no standard error. The posterior
# stays inside the simplex and has an interval for each category. As point estimates they are about equally good; only
# the posterior also estimates its error.

projected = project_on_simplex(model.point_estimate_)
intervals = model.posterior_.interval(0.9)["frequencies"]
print("genre       truth   unbiased  projected   posterior  90 % interval")
for row in zip(genres, truth, model.point_estimate_, projected, model.frequencies_, *intervals.T):
    print("{:10} {:6.3f} {:10.3f} {:10.3f} {:11.3f}  {:.3f} to {:.3f}".format(*row))
covered = np.sum((intervals[:, 0] <= truth) & (truth <= intervals[:, 1]))
print(f"\n{covered} of the {len(genres)} intervals contain the truth; nine in ten do on average.")
estimates = {"unbiased": model.point_estimate_, "projected": projected, "posterior": model.frequencies_}
for name, estimate in estimates.items():
    print(f"  root mean square error, {name}: {np.sqrt(np.mean((estimate - truth) ** 2)):.4f}")

# %%
# The posterior also has probabilities of ranks. Each draw is a whole histogram, so the probability that a genre is
# among the three most frequent ones is the share of draws in which it is.

top = model.top_k_probability(3)
ranks = model.rank_interval(0.9)
print("\ngenre       in the top three   90 % interval of its rank")
for genre, probability, (first, last) in zip(genres, top, ranks):
    print(f"{genre:10} {probability:17.0%}   {first} to {last}")

# %%
# A picture, if matplotlib is installed (``pip install "skldp[plot]"``): the frequencies on the left, and on the
# right the ranks. Long bars are ranks that ten thousand reports do not determine.

try:
    import matplotlib.pyplot as plt
except ImportError:
    pass
else:
    places = np.arange(len(genres))
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharey=True)
    left.scatter(projected, places, marker="|", s=60, color="tab:red", zorder=4, label="projected")
    PosteriorDisplay.from_estimator(model, "frequencies", truth=truth, ax=left)
    right.hlines(places, *ranks.T, color="tab:blue", linewidth=6, alpha=0.4)
    right.scatter(places + 1, places, marker="x", color="black", zorder=3)
    for place, probability in zip(places, top):
        right.annotate(f"{probability:.0%}", (13.6, place), ha="right", va="center")
    right.annotate("in the top 3", (13.6, -0.75), ha="right", va="bottom", annotation_clip=False)
    right.set(xlabel="rank: 90 % interval, and the truth", xticks=places + 1, xlim=(0.4, 13.8))
    plt.show()
