"""What a file gives away beyond its rows: dictionaries, statistics, metadata, order, leftovers."""

from duckanon.disclosure.files.base import KINDS, Leak
from duckanon.disclosure.files.scan import file_leaks

__all__ = ["KINDS", "Leak", "file_leaks"]
