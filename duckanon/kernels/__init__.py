"""Kernels: compiled loops over integer codes. They know neither databases nor Arrow, and are trusted for speed only."""
