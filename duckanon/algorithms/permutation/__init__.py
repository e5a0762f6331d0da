"""Permutation of values within groups of similar rows."""
