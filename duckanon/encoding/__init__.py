"""Columns as dense integer codes: dictionaries, frequency tables, counts."""
