"""Budget accounting in simulations: the total that every simulated client has spent over many calls."""

import math
import os
import threading
import warnings
import weakref
from typing import NamedTuple, Self

from skldp._validation._parameters import check_fraction
from skldp.privacy._spending import announce_to_children, open_ledgers, read_message
from skldp.privacy._spool import Spool, child_processes, has_worked, remove_if_owner

__all__ = ["Ledger"]


class Ledger:
    r"""Context manager that adds up the budget spent by simulated clients.

    Asking the same person twice spends their budget twice. Cross-validation, grid search and ensembles do so at every
    fit, but ``epsilon_`` of a fitted estimator is the cost of that fit alone. This is acceptable in a simulation, but
    it is not a guarantee. While a ledger is open it counts every ``fit``, ``partial_fit``, ``privatize`` and
    ``transform`` of the package that randomises records, in any thread or process. Several ledgers may be open at a
    time.

    Attributes
    ----------
    largest : float
        Largest total epsilon of a row; rows are matched by content.
    upper : float
        Sum of the epsilons of all calls, as if every call had asked the same people.

    Notes
    -----
    Within one call every row is a separate client. Of several rows with the same features, the j-th is matched with the
    j-th such row of every other call. The response is not compared, because wrappers such as one-vs-rest change it.
    Only a digest of each row is kept, with a key that is drawn for each ledger.

    ``largest`` is exact if equal rows belong to the same person and rows keep their values. A step that is fitted again
    on each fold, such as a scaler or PCA, changes the values; then only ``upper`` includes the sum over folds. A row
    that a bootstrap draws twice counts as two clients.

    Processes started while the ledger is open are counted. So are processes that receive an estimator, perturber or
    protocol pickled while it is open, if they can write to the temporary folder of this machine. :meth:`summary`, and a
    warning when the ledger is closed, report what may have been missed: a pickle that was not opened where the ledger
    could detect it, or a child process that was started earlier and worked without receiving such a pickle. Workers of
    other programs or machines that build their own estimators cannot be detected. Randomising directly with a mechanism
    of :mod:`skldp.mechanisms` is not counted.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV
    >>> from skldp import LDPGaussian
    >>> from skldp.privacy import Ledger
    >>> X = np.random.default_rng(0).normal(size=(1000, 1))
    >>> search = GridSearchCV(LDPGaussian(inference="laplace", bounds=(-4, 4)), {"epsilon": [1, 2]}, cv=5, refit=False)
    >>> with Ledger() as spent:
    ...     _ = search.fit(X)
    >>> spent.largest, spent.upper
    (12.0, 15.0)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._totals: dict[bytes, _Total] = {}  # by client
        self._calls: dict[bytes, tuple[float, float]] = {}  # largest epsilon and delta of each call
        self._pid = os.getpid()
        self._spool: Spool | None = None
        self._older: dict[int, float | None] = {}
        self._answered: set[int] = set()
        self._n_pickled = self._n_opened = self._n_silent = 0
        self._incomplete = False

    def open(self) -> Self:
        """Start counting; the ``with`` statement calls this.

        Returns
        -------
        self
        """
        if self._spool is not None:
            raise RuntimeError("This ledger is open already. Close it first, or use another one.")
        self._pid, self._spool = os.getpid(), Spool.create()
        self._older, self._answered = child_processes(), set()
        self._finalizer = weakref.finalize(self, remove_if_owner, self._pid, self._spool)
        open_ledgers.append(self)
        announce_to_children()
        return self

    def close(self) -> None:
        """Stop counting, and warn if something may have been missed."""
        self._close()
        self._warn()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self._close()
        if kind is None:  # after an error only summary() reports what was missed
            self._warn()

    @property
    def largest(self) -> float:
        """Largest total epsilon of a row; rows are matched by content."""
        self._collect()
        return max((total.epsilon for total in tuple(self._totals.values())), default=0.0)

    @property
    def upper(self) -> float:
        """Sum of the epsilons of all calls, as if every call had asked the same people."""
        self._collect()
        return math.fsum(epsilon for epsilon, _ in tuple(self._calls.values()))

    def summary(self, delta: float = 1e-6) -> str:
        r"""Return a text with the budgets spent and the limits of this account.

        Parameters
        ----------
        delta : float, default=1e-6
            The probability :math:`\delta'` that advanced composition may add. Advanced composition is shown only if it
            gives a smaller epsilon than the sum.

        Returns
        -------
        str

        Notes
        -----
        Advanced composition of :math:`(\epsilon_i, \delta_i)` is

        .. math:: \sum_i \epsilon_i\tanh(\epsilon_i/2) + \sqrt{2\log(1/\delta')\sum_i\epsilon_i^2}

        at :math:`\delta' + \sum_i\delta_i`. It holds for budgets that are fixed beforehand.

        References
        ----------
        P. Kairouz, S. Oh, P. Viswanath (2015). The composition theorem for differential privacy. ICML. Theorem 3.5.

        Examples
        --------
        >>> from skldp import LaplacePerturber
        >>> from skldp.privacy import Ledger
        >>> perturber = LaplacePerturber(epsilon=0.1).fit([[0.0]])
        >>> with Ledger() as spent:
        ...     for _ in range(400):
        ...         _ = perturber.transform([[0.5]])
        >>> print(spent.summary())
        400 calls, 1 row of different content.
        Largest total of a row, by content: epsilon 40, delta 0; or epsilon 12.5 at delta 1e-06 (advanced composition).
        Sum over calls, as if all were the same people: epsilon 40, delta 0; or ...
        Rows that an earlier step changed, such as a scaler or PCA fitted on each fold, cannot be matched by content:
        then only the sum over calls is a bound.
        """
        check_fraction(delta, "delta")
        self._collect()
        rows = set(tuple(self._totals.values())) or {_NOTHING}
        calls = _NOTHING
        for epsilon, call_delta in tuple(self._calls.values()):
            calls = calls.plus(_Total.of(epsilon, call_delta))
        n_calls, n_rows = len(self._calls), len(self._totals)
        lines = [
            f"{n_calls:,} call{'s' * (n_calls != 1)}, {n_rows:,} row{'s' * (n_rows != 1)} of different content.",
            f"Largest total of a row, by content: {_in_words(rows, delta)}.",
            f"Sum over calls, as if all were the same people: {_in_words({calls}, delta)}.",
            "Rows that an earlier step changed, such as a scaler or PCA fitted on each fold, cannot be matched by "
            "content:\nthen only the sum over calls is a bound.",
        ]
        return "\n".join(lines + self._missed())

    def _warn(self):
        if missed := self._missed():
            warnings.warn(" ".join(missed), UserWarning, stacklevel=3)

    def _missed(self):
        """Return one sentence about each kind of spending that may have been missed."""
        found = []
        if (n_lost := self._n_pickled - self._n_opened) > 0:
            found.append(f"The ledger could not see what became of {n_lost} pickled estimators, perturbers or "
                         "protocols: what they spend on another machine is not counted. If they were only saved or "
                         "hashed, nothing is missing.")
        if self._n_silent:
            found.append(f"The ledger could not see {self._n_silent} child processes that were running before it was "
                         "opened and have worked since: what they spent is not counted. Start them inside.")
        if self._incomplete:
            found.append("The ledger could not see all spending of other processes: their messages are incomplete.")
        return found

    def _close(self):
        if self._spool is None:
            return
        open_ledgers.remove(self)
        announce_to_children()
        if os.getpid() == self._pid:  # only the process that opened the ledger receives messages
            self._collect(last=True)
            silent = (pid for pid in self._older if pid not in self._answered)
            self._n_silent += sum(has_worked(pid, self._older[pid]) for pid in silent)
        self._finalizer()
        self._spool = None

    def _collect(self, last=False):
        """Read what other processes have sent."""
        if os.getpid() != self._pid:
            raise RuntimeError(f"This ledger belongs to process {self._pid}. Read it there.")
        with self._lock:
            if self._spool is None:
                return
            try:
                for kind, sender, content in self._spool.receive():
                    self._answered.add(sender)
                    self._read(kind, content)
                self._incomplete |= last and self._spool.has_unfinished()
            except FileNotFoundError:  # the folder was removed from outside
                self._incomplete = True

    def _read(self, kind, content):
        if kind == "spent":
            self._add(*read_message(content))
        self._n_pickled += kind == "pickled"
        self._n_opened += kind == "opened"
        self._n_silent += kind == "silent"

    def _add(self, call, epsilon, delta, clients):
        """Add a call's budget to the totals of its clients; the caller holds the lock."""
        before = self._calls.get(call, (0.0, 0.0))
        self._calls[call] = max(before[0], epsilon), max(before[1], delta)
        charge = _Total.of(epsilon, delta)
        sums: dict[_Total, _Total] = {}
        for client in clients:
            total = self._totals.get(client, _NOTHING)
            if (new := sums.get(total)) is None:  # rows with the same history share one object
                new = sums[total] = total.plus(charge)
            self._totals[client] = new

    def _receive(self, kind, content=b""):
        """Process a message of this process, or send it to the parent from a forked child."""
        if os.getpid() == self._pid:
            with self._lock:
                self._read(kind, content)
        elif self._spool is not None:
            self._spool.send(kind, content)


class _Total(NamedTuple):
    """Sums over the budgets that a client has spent."""

    epsilon: float
    delta: float
    mean: float  # of epsilon * tanh(epsilon / 2), the mean privacy loss of the worst mechanism
    squares: float

    @classmethod
    def of(cls, epsilon, delta):
        """Return the sums of a single budget."""
        return cls(epsilon, delta, epsilon * math.tanh(epsilon / 2), epsilon**2)

    def plus(self, other):
        """Return the sums over both."""
        return _Total(*(first + second for first, second in zip(self, other)))

    def advanced(self, delta):
        """Epsilon by advanced composition."""
        return self.mean + math.sqrt(-2 * math.log(delta) * self.squares)


_NOTHING = _Total(0.0, 0.0, 0.0, 0.0)


def _in_words(totals, delta):
    """Describe the largest of several totals, by basic and by advanced composition."""
    epsilon, spent = max(total.epsilon for total in totals), max(total.delta for total in totals)
    text = f"epsilon {epsilon:.6g}, delta {min(spent, 1.0):.3g}"
    composed = max(min(total.epsilon, total.advanced(delta)) for total in totals)
    if composed < epsilon:
        text += f"; or epsilon {composed:.3g} at delta {min(spent + delta, 1.0):.3g} (advanced composition)"
    return text
