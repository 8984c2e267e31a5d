r"""One column of each client, which the client draws by a uniform coin and reports with its whole budget.

A report is a row of k + 1 integers for k columns: the number j of the column, then a place for each column with the
report at place j and zeros at the others. So the width of a report tells the number of columns, as it does when all
columns are reported, and a table of reports has one column for each column of the records.

*Privacy.* The coin j is drawn before the record is read, with probabilities :math:`\pi_j` that do not depend on it. For
records x and x' and every report (j, z) of a mechanism with budget epsilon,

.. math:: \frac{P(j, z \mid x)}{P(j, z \mid x')} = \frac{\pi_j\,P(z \mid x_j)}{\pi_j\,P(z \mid x'_j)} \le e^\epsilon,

so the index costs nothing, whether or not the coin is exactly uniform; with a delta the same holds for the sum over
all j of the probabilities of events.
"""

import numpy as np

from skldp.privacy._noise import uniform_below


def draw_columns(n_clients, n_columns, source):
    """Draw the number of one column for each client, one word each; no record is needed."""
    return uniform_below(source.words(n_clients), n_columns)


def to_rows(columns, reports, n_columns, dtype):
    """Return rows with the number of a column, its report at its own place, and zeros at the places of the others."""
    rows = np.zeros((len(columns), n_columns + 1), dtype=dtype)
    rows[:, 0] = columns
    rows[np.arange(len(columns)), columns + 1] = reports
    return rows


def own_reports(rows):
    """Return the report at the place that each row names, and a mask of the rows of the form that :func:`to_rows` has.

    The report of a row of another form is arbitrary.
    """
    columns = rows[:, 0]
    named = (columns >= 0) & (columns < rows.shape[1] - 1)
    own = rows[np.arange(len(rows)), np.where(named, columns, 0).astype(np.intp) + 1]
    n_others = np.count_nonzero(rows[:, 1:], axis=1) - (own != 0)
    return own, named & (n_others == 0)


def by_column(rows):
    """Yield the reports of each column, from valid rows."""
    own, _ = own_reports(rows)
    order = np.argsort(rows[:, 0], kind="stable")
    edges = np.searchsorted(rows[order, 0], np.arange(rows.shape[1]))
    for start, end in zip(edges[:-1], edges[1:]):
        yield own[order[start:end]]
