"""The pipeline from a plan to a checked release, the gate, and the verification of exports."""
