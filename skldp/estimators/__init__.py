"""The Bayesian estimators: each combines a protocol and a model, with the interface of scikit-learn."""
