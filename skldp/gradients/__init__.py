"""Private stochastic gradient descent, the interactive baseline."""
