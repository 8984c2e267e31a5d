"""scikit-learn transformers: perturbers that randomise records, and maps of public columns and bounds into a ball."""
