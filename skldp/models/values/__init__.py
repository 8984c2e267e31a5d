"""Models of one number per client."""
