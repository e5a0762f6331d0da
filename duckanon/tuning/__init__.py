"""Choose algorithm and parameters by how well a task can be done with the release."""
