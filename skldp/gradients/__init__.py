"""The interactive baseline: private stochastic gradient descent."""
