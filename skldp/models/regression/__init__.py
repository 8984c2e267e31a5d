"""Models of a response given a vector of features."""
