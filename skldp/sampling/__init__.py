"""Sampling with emcee: moves, warm-up, stop rule, diagnostics, and the resulting Posterior."""

from skldp.sampling._hamiltonian import HamiltonianMove
from skldp.sampling._inference import sample
from skldp.sampling._posterior import Posterior

__all__ = ["HamiltonianMove", "Posterior", "sample"]
