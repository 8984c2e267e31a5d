"""Warnings and errors of the library."""

__all__ = [
    "BudgetError",
    "FewReportsWarning",
    "ImplausibleReportsWarning",
    "InterruptedStreamError",
    "InvalidParameterError",
    "InvalidReportError",
    "ModelMisfitWarning",
    "PrivacyLeakWarning",
    "ScaleWarning",
    "SeededNoiseWarning",
    "StatisticalWarning",
]


class PrivacyLeakWarning(UserWarning):
    """A public parameter was read from the private data.

    The privacy guarantee covers the reports only. A category list or a set of
    class labels learned from the records is published without any noise.

    Examples
    --------
    >>> import warnings
    >>> from skldp import LDPHistogram
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     reports = LDPHistogram(random_state=0).privatize([["cat"], ["dog"]])
    >>> caught[0].category.__name__
    'PrivacyLeakWarning'
    """


class SeededNoiseWarning(UserWarning):
    """The noise of a report was drawn from a seed, so it gives no privacy.

    Anyone who knows the seed can subtract the noise. Seeds are for
    simulations; a client leaves ``random_state`` at ``None``.

    Examples
    --------
    >>> import warnings
    >>> from skldp.protocols import ValueProtocol
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     report = ValueProtocol(bounds=(0, 10)).privatize([3.0], random_state=0)
    >>> caught[0].category.__name__
    'SeededNoiseWarning'
    """


class StatisticalWarning(UserWarning):
    """Base class of warnings that the reports make a result doubtful.

    Examples
    --------
    >>> from skldp.exceptions import ImplausibleReportsWarning, StatisticalWarning
    >>> issubclass(ImplausibleReportsWarning, StatisticalWarning)
    True
    """


class ImplausibleReportsWarning(StatisticalWarning):
    """The reports are improbable under the protocol for any records: some were not made by it.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from skldp import LDPGaussian
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     check = LDPGaussian().check_reports(np.full((10_000, 1), 512))
    >>> caught[0].category.__name__
    'ImplausibleReportsWarning'
    """


class ModelMisfitWarning(StatisticalWarning):
    """The reports are improbable under the fitted model: its family, bounds or categories are wrong.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from skldp import LDPGaussian
    >>> skewed = np.random.default_rng(0).exponential(1.0, size=(20_000, 1))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = LDPGaussian(bounds=(0, 5), inference="laplace", random_state=0).fit(skewed)
    >>> caught[0].category.__name__
    'ModelMisfitWarning'
    """


class FewReportsWarning(StatisticalWarning):
    """The reports say little: the posterior of most coefficients, or of collinear columns, is nearly the prior.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from skldp import LDPBayesLinearRegression
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(100, 2))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = LDPBayesLinearRegression(epsilon=1.0, random_state=0).fit(X, X[:, 0])
    >>> caught[0].category.__name__
    'FewReportsWarning'
    """


class ScaleWarning(StatisticalWarning):
    """Records are much longer or much shorter than the public bounds ``data_norm`` or ``bounds_y``.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from skldp import LDPBayesLinearRegression
    >>> X = np.random.default_rng(0).uniform(0, 100, size=(10_000, 2))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = LDPBayesLinearRegression(epsilon=4.0, inference="laplace", random_state=0).fit(X, X[:, 0])
    >>> caught[0].category.__name__
    'ScaleWarning'
    """


class InvalidParameterError(ValueError, TypeError):
    """A public parameter is outside its domain or of the wrong type.

    Examples
    --------
    >>> from skldp.exceptions import InvalidParameterError
    >>> from skldp.mechanisms import Laplace
    >>> try:
    ...     Laplace(epsilon=-1.0)
    ... except InvalidParameterError:
    ...     print("epsilon is refused")
    epsilon is refused
    """


class BudgetError(InvalidParameterError):
    """A protocol asks for more of a person's privacy budget than is left.

    Examples
    --------
    >>> from skldp.exceptions import BudgetError
    >>> from skldp.protocols import Client, ValueProtocol
    >>> try:
    ...     Client(ValueProtocol(epsilon=4.0), max_epsilon=1.0)
    ... except BudgetError:
    ...     print("the protocol is refused")
    the protocol is refused
    """


class InvalidReportError(ValueError):
    """A report that no honest client could have sent under the protocol.

    Attributes
    ----------
    aggregate : Aggregate or None
        Sums of the chunks before this one, if the reports came as a stream.

    Examples
    --------
    >>> from skldp.exceptions import InvalidReportError
    >>> from skldp.protocols import ValueProtocol
    >>> try:
    ...     ValueProtocol(bounds=(0, 10)).aggregate([[10**6]])
    ... except InvalidReportError:
    ...     print("the report is refused")
    the report is refused
    """

    def __init__(self, message, aggregate=None):
        super().__init__(message)
        self.aggregate = aggregate


class InterruptedStreamError(RuntimeError):
    """The source of a stream of reports failed.

    Attributes
    ----------
    aggregate : Aggregate or None
        Sums of the chunks before the failure.

    Examples
    --------
    >>> from skldp import LDPGaussian
    >>> from skldp.exceptions import InterruptedStreamError
    >>> def chunks():
    ...     yield [[512], [600]]
    ...     raise OSError("the disk is gone")
    >>> try:
    ...     LDPGaussian().aggregate(chunks())
    ... except InterruptedStreamError as error:
    ...     print(error.aggregate)
    Aggregate(2 reports; epsilon 1; 0 rejected)
    """

    def __init__(self, message, aggregate=None):
        super().__init__(message)
        self.aggregate = aggregate
