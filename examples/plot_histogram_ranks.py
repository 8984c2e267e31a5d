"""
Which categories lead, and how sure are we?
===========================================

Ten thousand people each have a favourite kind of music. Every one of them sends a noisy report, and we estimate how
common each kind is. A single list of frequencies would hide how much of it is noise; a posterior tells which places of
the ranking are settled and which are not.
"""

import numpy as np

from skldp import LDPHistogram, PosteriorDisplay, project_on_simplex

# %%
# The categories are public: everybody knows the list, nobody tells their own entry.

genres = ["pop", "rock", "hip hop", "country", "classical", "jazz", "metal", "folk", "blues", "reggae", "opera",
          "polka"]
truth = np.array([0.22, 0.18, 0.16, 0.12, 0.09, 0.07, 0.05, 0.04, 0.03, 0.02, 0.015, 0.005])
favourites = np.random.default_rng(0).choice(genres, p=truth, size=(10_000, 1))

model = LDPHistogram(epsilon=0.5, categories=genres, random_state=0).fit(favourites)
print(f"{model.n_reports_:,} reports at epsilon = {model.epsilon_:g}, by {model.mechanism_} selection.\n")

# %%
# The textbook estimate inverts the noise on average. It is unbiased, but some frequencies may come out negative; the
# usual mending moves it to the nearest point of the simplex, which sets small categories to exactly zero and says
# nothing about its own error. The posterior stays inside the simplex and has an interval for each category. As point
# estimates they are about equally good; only one of them knows how good that is.

projected = project_on_simplex(model.point_estimate_)
intervals = model.posterior_.interval(0.9)["frequencies"]
print("genre       truth   unbiased  projected   posterior  90 % interval")
for row in zip(genres, truth, model.point_estimate_, projected, model.frequencies_, *intervals.T):
    print("{:10} {:6.3f} {:10.3f} {:10.3f} {:11.3f}  {:.3f} to {:.3f}".format(*row))
covered = np.sum((intervals[:, 0] <= truth) & (truth <= intervals[:, 1]))
print(f"\n{covered} of the {len(genres)} intervals hold the truth; nine in ten do on average.")
estimates = {"unbiased": model.point_estimate_, "projected": projected, "posterior": model.frequencies_}
for name, estimate in estimates.items():
    print(f"  root mean square error, {name}: {np.sqrt(np.mean((estimate - truth) ** 2)):.4f}")

# %%
# Questions about the order of the categories have answers too. Each draw of the posterior is a whole histogram, so the
# share of draws in which a genre is among the three most frequent ones is the probability that it is.

top = model.top_k_probability(3)
ranks = model.rank_interval(0.9)
print("\ngenre       in the top three   90 % interval of its rank")
for genre, probability, (first, last) in zip(genres, top, ranks):
    print(f"{genre:10} {probability:17.0%}   {first} to {last}")

# %%
# A picture, where matplotlib is installed (``pip install "skldp[plot]"``): the frequencies on the left, and on the
# right what we know about the ranks. Long bars are places that ten thousand reports cannot settle.

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
