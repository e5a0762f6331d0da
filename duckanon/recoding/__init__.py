"""From the result of a search to published columns, and the relations that describe a release."""
