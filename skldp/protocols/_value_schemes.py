"""Mechanisms of values by name: their options, the randomiser, and the cells of its reports."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from skldp._validation._parameters import check_delta, check_real, is_auto
from skldp.mechanisms._encoding import BALL_RADIUS, encode_interval
from skldp.mechanisms._gaussian import Gaussian
from skldp.mechanisms._laplace import Laplace
from skldp.mechanisms._square_wave import SquareWave
from skldp.protocols._cells import GaussianCells, LaplaceCells, SquareWaveCells


class ValueScheme(ABC):
    """One way to randomise the values of a :class:`ValueProtocol`."""

    default_levels: ClassVar[int] = 2**16

    # With k columns, clients that report one of them need fewer people up to a budget of this number times sqrt(k). For
    # noise of variance c / epsilon^2 and records of variance v it is sqrt(c / v): 14 for Laplace noise on records that
    # spread over a tenth of the range, so that all budgets up to 20 are below the limit.
    sampled_up_to: ClassVar[float] = math.inf

    @abstractmethod
    def mechanism(self, protocol, epsilon):
        """Return the randomiser of one value, which gets a share of the budget."""

    @abstractmethod
    def cells(self, protocol):
        """Return the public cells in which reports are counted."""

    def check_delta(self, delta):
        """Return the failure probability of a client: 0 for a pure mechanism, which ignores the argument."""
        return 0.0

    def check_window(self, window, mechanism):
        """Return the half-window for the description of the protocol: ``None`` for a mechanism without one."""
        if window is not None and not is_auto(window):
            check_real(window, "window")

    def encode(self, protocol, X):
        """Encode values on a grid, such that equal codes have reports of the same distribution."""
        return encode_interval(X, protocol.bounds, protocol.n_levels)

    def randomize(self, protocol, X, random_state):
        """Draw one report for each value."""
        return protocol.randomizer.randomize(X, random_state)


class SquareWaveScheme(ValueScheme):
    """The square wave."""

    default_levels = 1024
    # Where both need the same number of people, by the Fisher information about the mean and the standard deviation of
    # normal records that spread over 5 % to 25 % of the range: epsilon 7.5, 9.4, 12.1, 17.5 for 2, 3, 5, 10 columns.
    sampled_up_to = 5.5

    def mechanism(self, protocol, epsilon):
        """Return the randomiser of one value."""
        return SquareWave(epsilon=epsilon, bounds=protocol.bounds, n_levels=protocol.n_levels, window=protocol.window)

    def cells(self, protocol):
        """Return one cell for each possible report."""
        return SquareWaveCells(protocol.randomizer)

    def check_window(self, window, mechanism):
        """Return the half-window as a number."""
        return mechanism.window


class LaplaceScheme(ValueScheme):
    """Laplace noise."""

    def mechanism(self, protocol, epsilon):
        """Return the randomiser of one value."""
        return Laplace(epsilon=epsilon, bounds=protocol.bounds, n_levels=protocol.n_levels)

    def cells(self, protocol):
        """Return cells inside the bounds, and a tail on either side."""
        return LaplaceCells(protocol.randomizer)


class GaussianScheme(ValueScheme):
    """Gaussian noise on the ball around the midpoint of the bounds."""

    def mechanism(self, protocol, epsilon):
        """Return the randomiser of one value."""
        radius = (protocol.bounds[1] - protocol.bounds[0]) / 2
        return Gaussian(epsilon=epsilon, delta=protocol.delta / protocol.n_reported, norm=radius)

    def cells(self, protocol):
        """Return cells of equal width over all reports."""
        return GaussianCells(protocol.randomizer, protocol.midpoint)

    def check_delta(self, delta):
        """Return the failure probability of a client."""
        return check_delta(delta)

    def encode(self, protocol, X):
        """Encode values on the grid of the ball, which does not depend on ``n_levels``."""
        return encode_interval(X, protocol.bounds, 2 * BALL_RADIUS)

    def randomize(self, protocol, X, random_state):
        """Draw one report for each value."""
        # The midpoint is the centre of the ball, to which a missing value is mapped.
        with np.errstate(all="ignore"):
            centred = (X - protocol.midpoint).reshape(-1, 1)
        return protocol.randomizer.randomize(centred, random_state).reshape(X.shape)


SCHEMES = {"square_wave": SquareWaveScheme(), "laplace": LaplaceScheme(), "gaussian": GaussianScheme()}
