"""Transformers for Pipelines: perturbers of records, and scalers that learn nothing from them."""
