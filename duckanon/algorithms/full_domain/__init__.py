"""Searches of the lattice of full-domain generalizations."""
