"""Base class of estimators whose clients send moments, by a mechanism that suits budget and number of features."""

import numpy as np
from sklearn.base import clone

from skldp.estimators._base import BaseLDPEstimator
from skldp.estimators._mechanisms import Moments, check_mechanism
from skldp.exceptions import InvalidReportError
from skldp.protocols._moment_protocol import BaseMomentProtocol


class BaseMomentEstimator(BaseLDPEstimator):
    """An estimator with a parameter ``mechanism``, for which "auto" depends on epsilon and the number of features."""

    def _chosen(self, protocol):
        return check_mechanism(self.mechanism)._chosen()

    def _with_epsilon(self, protocol, epsilon):
        if not isinstance(protocol, BaseMomentProtocol):
            return super()._with_epsilon(protocol, epsilon)
        cohort = clone(self).set_params(epsilon=epsilon)
        return cohort._protocol(protocol.n_features, self._found(protocol))._like(protocol)

    def _of_rows(self, reports, labels):
        """Return the protocol whose reports are as wide as these rows; of two, the one that more rows are valid for."""
        first, mechanism = self._protocol(labels=labels), check_mechanism(self.mechanism)
        if not isinstance(first, BaseMomentProtocol) or not isinstance(mechanism, Moments):
            return super()._of_rows(reports, labels)
        width = reports.shape[1]
        kinds = [kind for kind in mechanism._kinds() if kind in first._mechanisms]
        numbers = {first._replace(mechanism=kind).with_width(width).n_features for kind in kinds}
        found = [self._protocol(n_features, labels) for n_features in sorted(numbers)]
        found = [one for one in found if one.width == width] or found[:1]
        return found[0] if len(found) == 1 else _of_valid_rows(found, np.asarray(reports))


def _of_valid_rows(protocols, rows):
    """Return the protocol that more of the rows could have come from; no row could have come from two of them."""
    n_valid = [np.count_nonzero(protocol.check(rows)) for protocol in protocols]
    if n_valid.count(max(n_valid)) > 1:
        each = " or ".join(f'{one.n_features} features and mechanism="{one.mechanism}"' for one in protocols)
        raise InvalidReportError(f"Reports of {protocols[0].width} integers may be those of {each}, and these rows do "
                                 "not show which. Pass est.protocol(n_features).aggregate(reports), or an estimator "
                                 "with that mechanism.")
    return protocols[int(np.argmax(n_valid))]
