"""The inverse of the map from real to positive numbers that coordinates use."""

import numpy as np


def inverse_softplus(values):
    """Return a with log(1 + exp(a)) equal to positive values.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models._softplus import inverse_softplus
    >>> bool(np.isclose(np.log1p(np.exp(inverse_softplus(3.0))), 3.0))
    True
    """
    return values + np.log(-np.expm1(-values))
