"""What a file reveals beyond its rows: dictionaries, statistics, metadata, order, leftovers."""

from duckanon.io.leaks.base import KINDS, Leak
from duckanon.io.leaks.scan import file_leaks

__all__ = ["KINDS", "Leak", "file_leaks"]
