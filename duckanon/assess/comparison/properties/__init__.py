"""Properties: what is measured of every row of a release. One file, one registration."""

from duckanon.assess.comparison.properties.base import Property, properties

__all__ = ["Property", "properties"]
