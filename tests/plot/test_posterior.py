import numpy as np
import pytest
from scipy import stats
from sklearn.pipeline import make_pipeline

from skldp import BoundedScaler, LDPBayesLinearRegression, LDPGaussian, PosteriorDisplay
from tests.plot.conftest import PETS, QUICK


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def area_under(line):
    x, y = line.get_data()
    return np.trapezoid(y, x)


def test_one_number_is_a_density_with_its_interval(gaussian):
    display = PosteriorDisplay.from_estimator(gaussian, "mean", level=0.8, truth=1.0)
    draws = gaussian.posterior_.draws["mean"]
    line, = display.lines_
    x, y = line.get_data()
    assert x.min() == draws.min() and x.max() == draws.max()
    assert area_under(line) == pytest.approx(1.0, abs=0.01)
    assert abs(x[np.argmax(y)] - np.median(draws)) < draws.std()
    vertices = display.intervals_[0].get_paths()[0].vertices
    assert np.allclose([vertices[:, 0].min(), vertices[:, 0].max()], gaussian.posterior_.interval(0.8)["mean"])
    assert display.truth_[0].get_xdata() == [1.0, 1.0]
    assert display.ax_.get_xlabel() == "mean" and display.ax_.get_ylabel() == "posterior density"
    assert legend(display) == ["80 % interval", "truth"]


def test_a_histogram_has_the_density_of_the_draws(gaussian):
    display = PosteriorDisplay.from_estimator(gaussian, "std", kind="histogram", bins=20)
    values, edges, _ = display.intervals_[0].get_data()
    assert [edges[0], edges[-1]] == pytest.approx(gaussian.posterior_.interval(0.9)["std"])
    heights, all_edges = np.histogram(gaussian.posterior_.draws["std"], bins=20, density=True)
    assert np.allclose(np.interp((edges[1:] + edges[:-1]) / 2, (all_edges[1:] + all_edges[:-1]) / 2, heights), values,
                       atol=heights.max() / 3)
    assert (values * np.diff(edges)).sum() == pytest.approx(0.9, abs=0.03)


def test_a_density_at_a_boundary_does_not_lose_mass():
    draws = np.random.default_rng(0).exponential(size=(4000, 1))
    display = PosteriorDisplay(draws, name="rate", labels=["rate"]).plot()
    x, y = display.lines_[0].get_data()
    assert x.min() > 0 and y[0] > 0.7
    assert area_under(display.lines_[0]) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("prior", [stats.norm(1, 0.5), stats.norm(1, 0.5).pdf,
                                   stats.norm(1, 0.5).rvs(20_000, random_state=0)], ids=["frozen", "density", "draws"])
def test_the_prior_is_drawn_where_the_posterior_is(gaussian, prior):
    bare = PosteriorDisplay.from_estimator(gaussian, "mean")
    display = PosteriorDisplay.from_estimator(gaussian, "mean", prior=prior)
    x, y = display.prior_[0].get_data()
    assert np.allclose(y, stats.norm(1, 0.5).pdf(x), atol=0.05)
    assert display.ax_.get_xlim() == bare.ax_.get_xlim()
    assert legend(display) == ["90 % interval", "prior"]


def test_few_elements_are_named_by_their_features(regression):
    display = PosteriorDisplay.from_estimator(regression, "coef", index=["sleep", "age", 1],
                                              truth=[0.5, -0.5, 0.2, 0.0])
    assert display.labels == ["sleep", "age", "height"]
    assert [line.get_xdata()[0] for line in display.truth_] == [0.0, 0.5, -0.5]
    assert legend(display) == ["sleep", "age", "height", "90 % interval", "truth"]
    assert len({line.get_color() for line in display.lines_}) == 3
    one = PosteriorDisplay.from_estimator(regression, "coef", index=-1, truth=0.0)
    assert one.ax_.get_xlabel() == "coef[sleep]" and one.truth == [0.0]


def test_without_a_name_the_first_parameter_is_drawn(gaussian, histogram, regression):
    names = [PosteriorDisplay.from_estimator(model).name for model in (gaussian, histogram, regression)]
    assert names == ["mean", "frequencies", "coef"]


@pytest.mark.parametrize("name", ["coef[height]", "coef[1]"])
def test_an_element_is_drawn_by_its_printed_name(regression, name):
    display = PosteriorDisplay.from_estimator(regression, name, truth=-0.5)
    assert np.array_equal(display.draws[:, 0], regression.posterior_.draws["coef"][..., 1].ravel())
    assert display.ax_.get_xlabel() == "coef[height]" and display.truth == [-0.5]


def test_many_elements_are_a_forest(regression):
    truth = np.array([[0.5, -0.5, 0.2, np.nan]])  # the shape of a classifier's coef_ is accepted
    display = PosteriorDisplay.from_estimator(regression, "coef", truth=truth, level=0.5)
    x, y = display.lines_[0].get_data()
    assert np.allclose(x, regression.coef_) and y.tolist() == [0, 1, 2, 3]
    segments = np.array([segment[:, 0] for segment in display.intervals_[0].get_segments()])
    assert np.allclose(segments, regression.posterior_.interval(0.5)["coef"])
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == ["age", "height", "weight", "sleep"]
    assert np.allclose(display.truth_[0].get_offsets().data[:3, 0], truth[0, :3])
    assert display.ax_.get_xlabel() == "coef"
    bottom, top = display.ax_.get_ylim()
    assert bottom > top, "the first element is on top"


def test_a_forest_of_categories_in_any_order(histogram):
    order = np.argsort(histogram.frequencies_)
    display = PosteriorDisplay.from_estimator(histogram, "frequencies", index=order, kind="forest")
    assert display.labels == [PETS[i] for i in order]
    assert np.allclose(display.lines_[0].get_xdata(), histogram.frequencies_[order])
    assert (np.diff(display.lines_[0].get_xdata()) > 0).all()


def test_a_forest_shows_the_interval_of_the_prior(regression):
    by_distribution = PosteriorDisplay.from_estimator(regression, "coef", prior=stats.norm(0, 1))
    draws = stats.norm(0, 1).rvs((50_000, 4), random_state=0)
    by_draws = PosteriorDisplay.from_estimator(regression, "coef", prior=draws)
    for display in (by_distribution, by_draws):
        segments = np.array([segment[:, 0] for segment in display.prior_[0].get_segments()])
        assert np.allclose(segments, [-1.645, 1.645], atol=0.05)
    with pytest.raises(ValueError, match="Pass the prior as draws or as a frozen distribution"):
        PosteriorDisplay.from_estimator(regression, "coef", prior=stats.norm.pdf)


def test_a_symmetric_matrix_is_drawn_once(regression):
    display = PosteriorDisplay.from_estimator(regression, "covariance")
    assert len(display.labels) == 10 and display.labels[:2] == ["age, age", "age, height"]
    one = PosteriorDisplay.from_estimator(regression, "covariance", index=(2, 3), truth=regression.covariance_)
    assert one.ax_.get_xlabel() == "covariance[weight, sleep]"
    assert one.truth == [regression.covariance_[2, 3]]


def test_columns_of_values_are_elements():
    X = np.random.default_rng(0).normal(size=(1000, 2))
    model = LDPGaussian(epsilon=4.0, **QUICK).fit(X)
    display = PosteriorDisplay.from_estimator(model, "mean")
    assert display.labels == ["0", "1"] and display.draws.shape[1] == 2


def test_a_pipeline_is_drawn_by_its_last_step():
    X = np.random.default_rng(0).uniform(0, 10, size=(2000, 2))
    pipeline = make_pipeline(BoundedScaler(bounds=(0, 10)), LDPBayesLinearRegression(**QUICK)).fit(X, X[:, 0] / 10)
    display = PosteriorDisplay.from_estimator(pipeline, "intercept")
    assert np.array_equal(display.draws[:, 0], pipeline[-1].posterior_.draws["intercept"].ravel())


@pytest.mark.parametrize("index", ["unicorn", 7, -6, (0, 1), 0.5, [1, "unicorn"]])
def test_an_unknown_element_raises_with_the_known_ones(histogram, index):
    with pytest.raises(ValueError, match="frequencies has no element .* 'cat', 'dog', 'fish'"):
        PosteriorDisplay.from_estimator(histogram, "frequencies", index=index)


def test_a_number_has_no_elements(gaussian):
    with pytest.raises(ValueError, match="mean has no element 0"):
        PosteriorDisplay.from_estimator(gaussian, "mean", index=0)


@pytest.mark.parametrize("options, sentence", [
    ({"kind": "pie"}, "kind must be one of"),
    ({"level": 1.0}, "level"),
    ({"truth": [1.0, 2.0]}, "truth must have the shape"),
    ({"index": []}, "selects no element"),
    ({"prior": np.zeros((10, 3)), "kind": "density"}, r"shape \(n,\) or \(n, 5\)"),
])
def test_invalid_options_raise(histogram, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        PosteriorDisplay.from_estimator(histogram, "frequencies", **options)


def test_a_constant_has_no_density():
    display = PosteriorDisplay(np.ones((100, 1)), name="loc", labels=["loc"])
    with pytest.raises(ValueError, match="All draws of loc are equal"):
        display.plot()
    assert display.plot(kind="forest").lines_[0].get_xdata() == [1.0]
