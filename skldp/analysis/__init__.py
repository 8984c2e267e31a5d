"""Analyses of a collection: required number of clients, influence of forged reports, tests for forged reports."""
