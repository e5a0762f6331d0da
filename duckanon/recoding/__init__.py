"""From a search's result to the published columns, and the relations that describe them."""
