"""The manual: its examples run, its links lead somewhere, its build has no warnings."""
