"""Clustering of similar rows into classes."""
