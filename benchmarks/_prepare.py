"""Preparation of Adult and Wine Quality for regressions: split, principal components, rows in the unit ball.

The scales, components and radius are learned from the training rows without noise. This is for convenience, is the same
for every method, and is not covered by any privacy guarantee.
"""

from functools import lru_cache

import numpy as np
from _data import load_adult, load_wine_quality
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

ADULT_NUMBERS = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
ADULT_DROPPED = ["fnlwgt", "education", "income"]
RADIUS_QUANTILE = 0.95  # of the row norms; the public radius of the data
WINE_BOUND = 2.0  # the centred quality is clipped to +-2


def adult_split(seed, n_components=8):
    """Return Adult as a binary problem: 39,073 training and 9,769 test rows.

    Logarithms of capital gain and loss, numbers standardised, categories one-hot, all centred, principal components,
    divided by the 95 % quantile of the training rows' norms.

    Parameters
    ----------
    seed : int
        Fixes the split into 80 % training and 20 % test rows.
    n_components : int or None, default=8
        Number of principal components; ``None`` keeps the columns as they are.

    Returns
    -------
    X_train, X_test : ndarray of shape (n, n_components)
        Training rows are clipped to norm 1, test rows are not.
    y_train, y_test : ndarray of int
        1 for an income above 50K, else -1.
    """
    features, labels = adult_table()
    train, test = train_test_split(np.arange(len(features)), test_size=0.2, random_state=seed)
    X_train, X_test = features[train].copy(), features[test].copy()
    numbers = slice(0, len(ADULT_NUMBERS))
    scaler = StandardScaler().fit(X_train[:, numbers])
    X_train[:, numbers], X_test[:, numbers] = (scaler.transform(X[:, numbers]) for X in (X_train, X_test))
    return *into_unit_ball(X_train, X_test, n_components), labels[train], labels[test]


def wine_split(seed, n_components=6):
    """Return Wine Quality as a regression problem: 5,197 training and 1,300 test rows.

    Columns standardised (including the colour as 0/1), principal components, divided by the 95 % quantile of the
    training rows' norms; the quality is centred at the training rows' mean.

    Parameters
    ----------
    seed : int
        Fixes the split into 80 % training and 20 % test rows.
    n_components : int or None, default=6
        Number of principal components; ``None`` keeps the columns as they are.

    Returns
    -------
    X_train, X_test : ndarray of shape (n, n_components)
        Training rows are clipped to norm 1, test rows are not.
    y_train, y_test : ndarray of float
        Centred quality. The public bounds that go with it are -2 and 2; nothing is clipped here.
    """
    features, quality = wine_table()
    X_train, X_test, y_train, y_test = train_test_split(features, quality, test_size=0.2, random_state=seed)
    scaler = StandardScaler().fit(X_train)
    mean = y_train.mean()
    X_train, X_test = into_unit_ball(scaler.transform(X_train), scaler.transform(X_test), n_components)
    return X_train, X_test, y_train - mean, y_test - mean


@lru_cache(maxsize=None)
def cached_split(data, seed):
    """Return the split of "adult" or "wine", cached; not in a script, from which it could not be pickled."""
    return adult_split(seed) if data == "adult" else wine_split(seed)


@lru_cache(maxsize=None)
def adult_table():
    """Return the features (numbers, then one column for each category) and the labels -1 and 1."""
    from pandas import get_dummies

    frame = load_adult()
    labels = np.where(frame["income"].astype(str).str.startswith(">50K"), 1, -1)
    numbers = frame[ADULT_NUMBERS].astype(float)
    for name in ("capital-gain", "capital-loss"):
        numbers[name] = np.log1p(numbers[name])
    categories = frame.drop(columns=ADULT_NUMBERS + ADULT_DROPPED).astype(object)
    # A missing value is a separate category.
    categories = get_dummies(categories.where(categories.notna(), "missing"), dtype=float)
    return np.hstack([numbers.to_numpy(), categories.to_numpy()]), labels


@lru_cache(maxsize=None)
def wine_table():
    """Return the measured columns with the colour as 0/1, and the quality."""
    frame = load_wine_quality()
    quality = frame["quality"].to_numpy(dtype=float)
    frame = frame.drop(columns="quality")
    if "colour" in frame:
        frame = frame.assign(colour=(frame["colour"] == "red").astype(float))
    return frame.to_numpy(dtype=float), quality


def into_unit_ball(X_train, X_test, n_components):
    """Return centred principal components of both parts, scaled so that 95 % of the training rows lie in the unit ball.

    The other training rows are clipped to norm 1.
    """
    mean = X_train.mean(axis=0)
    X_train, X_test = X_train - mean, X_test - mean
    if n_components is not None:
        pca = PCA(n_components, svd_solver="full").fit(X_train)
        X_train, X_test = pca.transform(X_train), pca.transform(X_test)
    radius = np.quantile(np.linalg.norm(X_train, axis=1), RADIUS_QUANTILE)
    return clip_rows(X_train / radius), X_test / radius


def clip_rows(X):
    """Return rows clipped to norm 1."""
    return X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
