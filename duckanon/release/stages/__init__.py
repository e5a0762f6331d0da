"""The stages of the pipeline, in the order in which they run."""
