"""The Spark snippet of the documentation, on a local Spark."""

import shutil

import numpy as np
import pytest

from skldp import LDPBayesLinearRegression

pyspark_sql = pytest.importorskip("pyspark.sql")
pytestmark = [pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
              pytest.mark.filterwarnings("ignore")]  # warnings of Spark itself


def test_spark_adds_up_partitions(monkeypatch):
    import sys

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    rng = np.random.default_rng(0)
    X, y = 0.3 * rng.normal(size=(2000, 3)), 0.3 * rng.normal(size=2000)
    model = LDPBayesLinearRegression(inference="laplace", random_state=0)
    reports = model.privatize(X, y)
    alone = model.fit_reports(reports).coef_

    session = pyspark_sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        rows = session.sparkContext.parallelize(reports.tolist(), 4)
        protocol = model.protocol(n_features=3)
        total = rows.mapPartitions(lambda part: [protocol.aggregate(list(part))]).reduce(lambda a, b: a + b)
    finally:
        session.stop()
    np.testing.assert_array_equal(model.fit_reports(total).coef_, alone)
