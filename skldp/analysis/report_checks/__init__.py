"""Tests of whether honest clients could have sent a collection of reports."""
