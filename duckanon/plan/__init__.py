"""The plan: what was asked for, resolved and validated before any row is read."""
