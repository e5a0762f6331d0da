"""Partitioning of rows into regions, Mondrian's way."""
