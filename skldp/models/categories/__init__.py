"""Models of the frequencies of categories."""
