"""Public model that the server sends to clients."""

import json
import math
from dataclasses import dataclass

from skldp._validation._limits import MAX_ENTRIES, MAX_REPORTS
from skldp._validation._parameters import check_integer
from skldp.exceptions import InvalidParameterError
from skldp.protocols._description import parse


@dataclass(frozen=True)
class GradientModel:
    """Public model that the server sends to one group of clients.

    Parameters
    ----------
    protocol_id : str
        ``id`` of the protocol that the model belongs to.
    round : int
        Number of rounds before this one.
    theta : tuple of float
        Parameters in the scaled coordinates of :class:`GradientProtocol`, with that of the constant last; row after row
        for the softmax.

    Examples
    --------
    >>> from skldp.protocols import GradientModel, GradientProtocol
    >>> start = GradientProtocol(n_features=2).start()
    >>> GradientModel.from_json(start.to_json()) == start, start.theta
    (True, (0.0, 0.0, 0.0))
    """

    protocol_id: str
    round: int
    theta: tuple

    def __post_init__(self):
        object.__setattr__(self, "round", check_integer(self.round, "round", 0))
        _check_length(self.theta)
        object.__setattr__(self, "theta", tuple(map(float, self.theta)))
        if not all(map(math.isfinite, self.theta)):
            raise InvalidParameterError("The model has parameters that are not finite. Ask the server for another.")

    def to_json(self) -> str:
        """Return the model as JSON text, to be sent.

        Returns
        -------
        str
        """
        return json.dumps({"protocol_id": self.protocol_id, "round": self.round, "theta": self.theta})

    @staticmethod
    def from_json(text: str | bytes) -> "GradientModel":
        """Read a model from JSON text.

        Parameters
        ----------
        text : str
            What :meth:`to_json` returned.

        Returns
        -------
        GradientModel
        """
        fields = parse(text, "a model")
        if set(fields) != {"protocol_id", "round", "theta"} or not isinstance(fields["protocol_id"], str):
            raise _no_model()
        theta = fields["theta"]
        if not isinstance(theta, list) or not all(type(value) in (int, float) for value in theta):
            raise _no_model()
        number = check_integer(fields["round"], "round", 0, MAX_REPORTS)  # each round has at least one report
        try:
            return GradientModel(fields["protocol_id"], number, tuple(map(float, theta)))
        except OverflowError:  # an integer above the largest float
            raise _no_model() from None


def _no_model():
    return InvalidParameterError("This is not a model: it must be the JSON text that a server sent.")


def _check_length(theta):
    """Raise an error for more parameters than any protocol has, before they become floats."""
    if hasattr(theta, "__len__") and len(theta) > MAX_ENTRIES:
        raise InvalidParameterError(f"The model has {len(theta)} parameters, but a protocol has at most "
                                    f"{MAX_ENTRIES}. Ask the server for another.")
