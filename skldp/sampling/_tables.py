"""Tables of a posterior: exact numbers, rounded where they are printed."""

import html
import math

from skldp.sampling._elements import LONGEST

_DECIMALS = {"ess_bulk": 0, "ess_tail": 0, "rhat": 3, "bits": 2}  # of these columns; the others follow the row's sd
_PADDING = "padding: 2px 8px"


class SummaryTable:
    """A table of numbers with aligned columns, for installations without pandas.

    Parameters
    ----------
    index : list of str
        Row names.
    columns : dict of str to ndarray of shape (n_rows,)
        Column name to values.
    left_out : str, default=""
        What the table leaves out, as a sentence below it.

    Examples
    --------
    >>> from skldp.sampling._tables import SummaryTable
    >>> table = SummaryTable(["mean"], {"mean": [172.3025], "sd": [0.2929], "rhat": [1.00061]})
    >>> table
            mean    sd   rhat
    mean  172.30  0.29  1.001
    >>> table["mean"]
    [172.3025]
    """

    def __init__(self, index, columns, left_out=""):
        self.index = index
        self.columns = columns
        self.left_out = left_out

    def __getitem__(self, label):
        return self.columns[label]

    def __repr__(self):
        return text_table(self.index, self.columns.items(), self.left_out)

    def _repr_html_(self):
        return html_table(self.index, self.columns.items(), self.left_out)


def text_table(index, columns, left_out=""):
    """Return columns, pairs of a label and its values, as aligned text with rounded numbers."""
    rows, notes = _rows(index, columns, left_out)
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = [name.ljust(widths[0]) + "".join("  " + cell.rjust(width) for cell, width in zip(row, widths[1:]))
             for name, *row in rows]
    return "\n".join(lines + notes)


def html_table(index, columns, left_out=""):
    """Return columns, pairs of a label and its values, as an HTML table with rounded numbers."""
    rows, notes = _rows(index, columns, left_out)
    (_, *head), *rows = (list(map(html.escape, row)) for row in rows)
    below = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    body = "".join(f'<tr><th style="text-align: left; {_PADDING}">{name}</th>{_cells("td", row)}</tr>'
                   for name, *row in rows)
    return (f'<table class="dataframe"><thead><tr><th></th>{_cells("th", head)}</tr></thead>'
            f"<tbody>{body}</tbody></table>{below}")


def _cells(tag, row):
    return "".join(f'<{tag} style="text-align: right; {_PADDING}">{cell}</{tag}>' for cell in row)


def _rows(index, columns, left_out):
    """Return the header and the first rows as strings, and notes about what is not shown.

    Columns without any number are not shown, such as the diagnostics of a Laplace approximation.
    """
    columns = [(str(label), list(values)) for label, values in columns]
    spreads = dict(columns).get("sd", [math.nan] * len(index))
    cells = [[_formatted(value, label, spread) for value, spread in zip(values, spreads)] for label, values in columns]
    shown = [(label, texts) for (label, _), texts in zip(columns, cells) if any(texts)]
    rows = [list(row) for row in zip(map(str, index), *(texts for _, texts in shown))]
    more = [f"and {len(rows) - LONGEST} more rows"] if len(rows) > LONGEST else []
    return [["", *(label for label, _ in shown)], *rows[:LONGEST]], more + [left_out] * bool(left_out)


def _formatted(value, label, spread):
    """Return a number with two significant digits of its standard deviation, or with the decimals of its column.

    Numbers without a standard deviation, and very small or large ones, have five significant digits.
    """
    if not _is_number(value):
        return str(value)
    if math.isnan(value):
        return ""
    decimals = _DECIMALS[label] if label in _DECIMALS else _decimals(spread)
    return f"{value:.5g}" if decimals is None or abs(value) >= 1e9 else f"{value:z.{decimals}f}"


def _decimals(spread):
    """Return how many decimals show two significant digits of a standard deviation; None if it is unknown or tiny."""
    if not _is_number(spread) or not 1e-6 < spread < math.inf:
        return None
    return max(0, 1 - math.floor(math.log10(float(f"{spread:.1e}"))))


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)
