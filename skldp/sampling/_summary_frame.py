"""Table of a posterior as a pandas DataFrame; imported only where pandas is installed."""

from pandas import DataFrame

from skldp.sampling._tables import html_table, text_table


class SummaryFrame(DataFrame):
    """A DataFrame of exact numbers that is printed with rounded ones.

    Examples
    --------
    >>> from skldp.sampling._summary_frame import SummaryFrame
    >>> table = SummaryFrame({"mean": [172.3025], "sd": [0.2929]}, index=["mean"])
    >>> table
            mean    sd
    mean  172.30  0.29
    >>> float(table.loc["mean", "mean"])
    172.3025
    """

    _metadata = ["left_out"]
    left_out = ""

    @property
    def _constructor(self):
        return SummaryFrame

    def __repr__(self):
        return text_table(self.index, self.items(), self.left_out)

    def _repr_html_(self):
        return html_table(self.index, self.items(), self.left_out)
