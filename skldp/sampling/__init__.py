"""Sampling: the only folder that imports emcee. Moves, warm-up, diagnostics, and the Posterior they end in."""

from skldp.sampling._hamiltonian import HamiltonianMove
from skldp.sampling._inference import sample
from skldp.sampling._posterior import Posterior

__all__ = ["HamiltonianMove", "Posterior", "sample"]
