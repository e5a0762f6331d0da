"""Sources that rows are read from, and sinks that releases are written to."""
