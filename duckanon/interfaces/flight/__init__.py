"""Arrow Flight SQL: other programs call the functions over a network connection."""
