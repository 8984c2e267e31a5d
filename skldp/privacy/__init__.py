"""Privacy guarantees: calibration, sensitivities, noise, thresholds, shuffling, audits and budget accounting."""

from skldp.privacy._audit import AuditResult, audit_epsilon, epsilon_between, hockey_stick, noise_pmf
from skldp.privacy._calibration import gaussian_delta, gaussian_sigma
from skldp.privacy._ledger import Ledger
from skldp.privacy._noise import (
    gaussian_noise,
    gaussian_slack,
    integer_noise,
    laplace_noise,
    laplace_slack,
    uniform_below,
)
from skldp.privacy._radii import record_radius, score_radius, subset_radius
from skldp.privacy._sensitivity import (
    ball_sensitivity,
    interval_sensitivity,
    labelled_moment_radius,
    moment_radius,
    moment_sensitivity,
    paper_moment_bound,
    weighted_moment_sensitivity,
)
from skldp.privacy._shuffling import shuffled_epsilon
from skldp.privacy._thresholds import exp_lower, flip_threshold, near_threshold
from skldp.privacy._words import SeededWords, SystemWords, word_source

__all__ = [
    "AuditResult",
    "Ledger",
    "SeededWords",
    "SystemWords",
    "audit_epsilon",
    "ball_sensitivity",
    "epsilon_between",
    "exp_lower",
    "flip_threshold",
    "gaussian_delta",
    "gaussian_noise",
    "gaussian_sigma",
    "gaussian_slack",
    "hockey_stick",
    "integer_noise",
    "interval_sensitivity",
    "labelled_moment_radius",
    "laplace_noise",
    "laplace_slack",
    "moment_radius",
    "moment_sensitivity",
    "near_threshold",
    "noise_pmf",
    "paper_moment_bound",
    "record_radius",
    "score_radius",
    "shuffled_epsilon",
    "subset_radius",
    "uniform_below",
    "weighted_moment_sensitivity",
    "word_source",
]
