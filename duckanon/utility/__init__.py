"""Does the release still teach? Encodings of anonymous tables for learners, and what learners make of them."""
