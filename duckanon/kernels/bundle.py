"""Bundles: the arrays and numbers of a named tuple, which kernels get as one address.

A kernel that is given a named tuple takes its arrays apart, seven numbers and more for each, and hands all of them to
every part that it calls: compiling that took longer than compiling what is done with them. A bundle is read where it is
needed.
"""

from __future__ import annotations

import os
import struct
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)


class _BundleType(types.Type):
    """The type of a bundle: that of its named tuple."""

    def __init__(self, whole: Any) -> None:
        self.whole = whole
        super().__init__(f"Bundle({whole})")


class Bundle:
    """A named tuple of arrays and numbers in memory that does not change; its arrays may."""

    def __init__(self, values: Any) -> None:
        self.values = values
        words = [word for value in values for word in _words(value)]
        self._memory = np.array([word % 2**64 for word in words], dtype=np.uint64)
        self.address = int(self._memory.ctypes.data)
        self.type = _type(values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.values, name)


_types: dict[Any, _BundleType] = {}


def _type(values: Any) -> _BundleType:
    """Return the type of a bundle; to find it anew takes longer than many a search."""
    key = (
        type(values),
        *(
            (value.dtype.str, value.ndim, value.flags.writeable) if isinstance(value, np.ndarray) else type(value)
            for value in values
        ),
    )
    if key not in _types:
        _types[key] = _BundleType(numba.typeof(values))
    return _types[key]


def bundled(values: Any) -> Any:
    """Return a named tuple as kernels take it."""
    return values if os.environ.get("NUMBA_DISABLE_JIT") == "1" else Bundle(values)


def _words(value: Any) -> list[int]:
    """Return what is in memory of an array, as numba has it, or of a number."""
    if isinstance(value, np.ndarray):
        if not value.flags.c_contiguous:
            raise TypeError("the arrays of a bundle are contiguous")
        return [0, 0, value.size, value.itemsize, int(value.ctypes.data), *value.shape, *value.strides]
    if isinstance(value, float):
        return [int.from_bytes(struct.pack("=d", value), "little")]
    return [int(value)]


def _places(whole: Any) -> dict[str, int]:
    """Return the word at which each field begins."""
    places, at = {}, 0
    for name, field in zip(whole.fields, whole.types, strict=True):
        places[name] = at
        at += 5 + 2 * field.ndim if isinstance(field, types.Array) else 1
    return places


@typeof_impl.register(Bundle)
def _type_of(value: Bundle, _context: Any) -> Any:
    return value.type


@register_model(_BundleType)
class _BundleModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.IntType(64).as_pointer())


@unbox(_BundleType)
def _unboxed(_kind: Any, value: Any, c: Any) -> Any:
    address = c.pyapi.object_getattr_string(value, "address")
    pointer = c.pyapi.long_as_voidptr(address)
    c.pyapi.decref(address)
    return NativeValue(c.builder.bitcast(pointer, ir.IntType(64).as_pointer()), is_error=c.pyapi.c_api_error())


@infer_getattr
class _Fields(AttributeTemplate):
    key = _BundleType

    def generic_resolve(self, kind: Any, name: str) -> Any:  # type: ignore[override]
        return dict(zip(kind.whole.fields, kind.whole.types, strict=True)).get(name)


@lower_getattr_generic(_BundleType)
def _field(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    """Read a field. What is read is said to be constant, so that it need not be read again after a store."""
    field = dict(zip(kind.whole.fields, kind.whole.types, strict=True))[name]
    place = builder.gep(value, [ir.Constant(ir.IntType(64), _places(kind.whole)[name])], inbounds=True)
    stored = ir.IntType(64) if field == types.boolean else context.get_value_type(field)
    loaded = builder.load(builder.bitcast(place, stored.as_pointer()))
    zero, one = (ir.Constant(ir.IntType(64), i) for i in range(2))
    kind_of_memory = builder.module.add_metadata(["bundle", builder.module.add_metadata(["duckanon"]), zero])
    tag = builder.module.add_metadata([kind_of_memory, kind_of_memory, zero, one])
    loaded.set_metadata("tbaa", tag)
    return builder.trunc(loaded, ir.IntType(1)) if field == types.boolean else loaded


__all__ = ["Bundle", "bundled"]
