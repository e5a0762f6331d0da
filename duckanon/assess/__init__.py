"""Assessment of releases and tables: privacy, risk, attacks, comparison, utility."""
