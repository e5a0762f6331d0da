"""The relations that models, metrics, risk and comparison read."""
