import numpy as np
import pytest
from scipy.stats import binom

from skldp import CoverageDisplay

# Strings, as read by the csv module, and not sorted.
ROWS = [{"level": level, "covered": covered, "repeats": "200", "epsilon": epsilon}
        for epsilon, level, covered in [("1.0", "0.9", "181"), ("1.0", "0.5", "96"), ("4.0", "0.5", "110"),
                                        ("4.0", "0.9", "170")]]


def test_a_curve_for_each_value_of_a_column():
    display = CoverageDisplay.from_results(ROWS, by="epsilon")
    first, second = display.lines_
    assert np.allclose(first.get_xydata(), [[0.5, 0.48], [0.9, 0.905]])
    assert np.allclose(second.get_xydata(), [[0.5, 0.55], [0.9, 0.85]])
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["epsilon 1", "epsilon 4", "99 % band"]
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("nominal coverage", "empirical coverage")
    assert np.array_equal(display.exact_.get_xdata(), display.exact_.get_ydata())


def test_the_band_is_binomial():
    display = CoverageDisplay.from_results(ROWS, by="epsilon", confidence=0.9)
    vertices = display.bands_[0].get_paths()[0].vertices
    for level in (0.5, 0.9):
        heights = vertices[vertices[:, 0] == level, 1]
        assert [heights.min(), heights.max()] == pytest.approx(binom.ppf([0.05, 0.95], 200, level) / 200)


def test_differences_are_in_percentage_points():
    display = CoverageDisplay.from_results(ROWS, by="epsilon", difference=True)
    assert np.allclose(display.lines_[0].get_ydata(), [-2.0, 0.5])
    assert np.allclose(display.exact_.get_ydata(), 0)
    assert "percentage points" in display.ax_.get_ylabel()


def test_a_data_frame_with_shares_and_words():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"level": [0.5, 0.5], "coverage": [0.4, 0.6], "repeats": [10, 1000],
                              "mechanism": ["oue", "rr"]})
    display = CoverageDisplay.from_results(frame, by="mechanism")
    assert [line.get_label() for line in display.lines_] == ["oue", "rr"]
    assert [band.get_label() for band in display.bands_] == ["99 % band of 10 repeats", "99 % band of 1000 repeats"]


def test_ranks_give_the_coverage_of_central_intervals():
    ranks = (np.arange(1000) + 0.5) / 1000
    display = CoverageDisplay.from_ranks({"exact": ranks, "far off": np.full(50, 0.999)}, level=[0.2, 0.9])
    assert np.allclose(display.lines_[0].get_ydata(), [0.2, 0.9])
    assert np.allclose(display.lines_[1].get_ydata(), 0.0)
    one = CoverageDisplay.from_ranks(ranks)
    assert [line.get_label() for line in one.lines_] == ["coverage"]


@pytest.mark.parametrize("table, sentence", [
    ({"level": [0.5], "repeats": [10]}, "need a column 'coverage'"),
    ({"level": [0.5], "repeats": [10], "coverage": [5]}, "pass counts as 'covered'"),
    ({"level": [1.5], "repeats": [10], "coverage": [0.5]}, "strictly between 0 and 1"),
    ({"level": [0.5], "repeats": [0], "coverage": [0.5]}, "at least one repeat"),
    ({"level": ["half"], "repeats": [10], "coverage": [0.5]}, "'level' must hold numbers"),
])
def test_invalid_tables_raise(table, sentence):
    with pytest.raises(ValueError, match=sentence):
        CoverageDisplay.from_results(table)
