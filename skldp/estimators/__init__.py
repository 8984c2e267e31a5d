"""The Bayesian estimators: each names a protocol and a model, and translates a posterior into scikit-learn's words."""
