"""Small made-up data sets with the columns and types of the real ones, for smoke runs without data and network."""

import numpy as np

N_ROWS = 4000


def adult_stand_in():
    """Return a data frame like that of Adult, with missing values."""
    from pandas import DataFrame

    rng = np.random.default_rng(0)

    def one_of(*values, missing=0.0):
        answers = rng.choice(np.array(values, dtype=object), size=N_ROWS)
        answers[rng.random(N_ROWS) < missing] = np.nan
        return answers

    age, education, hours = (rng.integers(*ends, size=N_ROWS) for ends in ((17, 91), (1, 17), (1, 100)))
    rich = 0.03 * (age - 45) + 0.4 * (education - 10) + rng.logistic(size=N_ROWS) > 1.5
    gain, loss = (rng.integers(1, most, size=N_ROWS) * (rng.random(N_ROWS) < 0.05) for most in (99_999, 4356))
    return DataFrame({
        "age": age,
        "workclass": one_of("Private", "State-gov", "Self-emp-inc", missing=0.06),
        "fnlwgt": rng.integers(12_000, 1_500_000, size=N_ROWS),
        "education": np.array([f"level {number}" for number in education], dtype=object),
        "education-num": education,
        "marital-status": one_of("Married-civ-spouse", "Never-married", "Divorced"),
        "occupation": one_of("Sales", "Craft-repair", "Exec-managerial", missing=0.06),
        "relationship": one_of("Husband", "Wife", "Own-child"),
        "race": one_of("White", "Black", "Other"),
        "sex": one_of("Female", "Male"),
        "capital-gain": gain,
        "capital-loss": loss,
        "hours-per-week": hours,
        "native-country": one_of("United-States", "Mexico", "Germany", missing=0.02),
        "income": np.where(rich, ">50K", "<=50K").astype(object),
    })


def wine_stand_in():
    """Return a data frame like that of Wine Quality."""
    from pandas import DataFrame

    rng = np.random.default_rng(0)
    means = {"fixed acidity": 7.2, "volatile acidity": 0.34, "citric acid": 0.32, "residual sugar": 5.4,
             "chlorides": 0.056, "free sulfur dioxide": 31.0, "total sulfur dioxide": 116.0, "density": 0.995,
             "pH": 3.2, "sulphates": 0.53, "alcohol": 10.5}
    red = rng.random(N_ROWS) < 0.25
    frame = DataFrame({name: mean * (1 + 0.1 * rng.normal(size=N_ROWS)) for name, mean in means.items()})
    quality = 5.8 + 0.4 * (frame["alcohol"] - 10.5) - 2 * (frame["volatile acidity"] - 0.34) + rng.normal(size=N_ROWS)
    return frame.assign(quality=np.clip(np.rint(quality), 3, 9).astype(int), colour=np.where(red, "red", "white"))


def kosarak_stand_in():
    """Return sessions like those of Kosarak: most are short, and a few items occur in most of them."""
    rng = np.random.default_rng(0)
    return [rng.zipf(1.5, size=size).clip(max=20_000) for size in rng.geometric(0.15, size=N_ROWS)]
