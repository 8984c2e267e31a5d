"""Fixtures that several folders use."""

import pytest


@pytest.fixture(scope="module")
def no_older_workers():
    """End the idle workers of joblib that other tests left: a ledger warns of those that wake up, if only to end."""
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True, kill_workers=True)
