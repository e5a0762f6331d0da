"""A Python function that kernels call, for models without a rule of their own."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

if TYPE_CHECKING:
    from numpy.typing import NDArray

_POINTER = ctypes.CFUNCTYPE(ctypes.c_bool, *[ctypes.c_int64] * 6)
_NUMBERS = ctypes.POINTER(ctypes.c_int64)


class ClassCallback:
    """Asks a Python function about one class: the number of the rule, its members and rows, its codes and their counts.

    Kernels pass addresses, because a function pointer takes no arrays; each call takes the interpreter's lock. Kernels
    cannot raise what the function raises: ``error`` keeps the first one, and every later answer is no.
    """

    def __init__(self, ask: Callable[[int, int, int, NDArray[np.int64], NDArray[np.int64]], bool]) -> None:
        self._ask = ask
        self._pointer = _POINTER(self)
        self.error: BaseException | None = None

    @property
    def address(self) -> int:
        """Where kernels call it."""
        return int(ctypes.cast(self._pointer, ctypes.c_void_p).value or 0)

    def __call__(self, rule: int, size: int, rows: int, entries: int, counts: int, found: int) -> bool:
        """Answer for the ``found`` codes at address ``entries``; code c has its count at ``counts`` + c."""
        if self.error is not None:
            return False
        try:
            codes = counted = np.empty(0, dtype=np.int64)
            if found:
                codes = np.ctypeslib.as_array(ctypes.cast(entries, _NUMBERS), (found,)).astype(np.int64)
                counted = np.ctypeslib.as_array(ctypes.cast(counts, _NUMBERS), (int(codes[-1]) + 1,))[codes]
            present = counted > 0
            return bool(self._ask(rule, size, rows, codes[present], counted[present]))
        except BaseException as error:
            self.error = error
            return False


@intrinsic
def _ask(_context, address, rule, size, rows, entries, counts, found):  # type: ignore[no-untyped-def]
    """Call the callback at an address."""
    int64 = numba.types.int64

    def call(context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        answer, number = ir.IntType(8), ir.IntType(64)
        pointer = builder.inttoptr(given[0], ir.FunctionType(answer, [number] * 6).as_pointer())
        return builder.trunc(builder.call(pointer, given[1:]), ir.IntType(1))

    return numba.types.boolean(*[int64] * 7), call


ask: Any = _ask


__all__ = ["ClassCallback", "ask"]
