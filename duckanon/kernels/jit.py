"""How kernels are compiled: the only place that knows numba."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable
from typing import Any, TypeVar, cast

import llvmlite
import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.cpython.unsafe import numbers
from numba.extending import intrinsic

from duckanon.kernels.cache import fill_shared, kernel_folder, shared_folder
from duckanon.progress import compiled, compiling

F = TypeVar("F", bound=Callable[..., Any])


_settings: Any = numba.config
_njit: Any = numba.njit
_typeof: Any = numba.typeof
_COMPILER = f"{numba.__version__} {llvmlite.__version__} {_settings.OPT} {_settings.BOUNDSCHECK}"
_FOLDER = kernel_folder(_COMPILER)
_SHARED = shared_folder(_COMPILER)


def _without_linear_algebra() -> None:
    """Let numba find BLAS when a kernel first calls it, and not when the first kernel is loaded.

    Until then numba would import scipy.linalg, which takes longer than numba itself; no kernel here needs it.
    """
    from numba.np import linalg

    if "numba.np.arraymath" in sys.modules:
        return
    find = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        from numba.np import arraymath  # noqa: F401
    finally:
        linalg.ensure_blas = find


_without_linear_algebra()


class _ByContent(_CacheLocator):
    """Finds compiled kernels by the content of their source, not by its path or date."""

    def __init__(self, function: Callable[..., Any], path: str) -> None:
        self._py_file = path
        self._line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, function: Callable[..., Any], path: str) -> _ByContent:
        return cls(function, path)

    def get_cache_path(self) -> str:
        return str(_FOLDER)

    def get_source_stamp(self) -> str:
        return _FOLDER.name

    def get_disambiguator(self) -> str:
        return str(self._line)


class _Shared(_ByContent):
    """Finds those that somebody else has compiled."""

    def get_cache_path(self) -> str:
        return str(_SHARED)


class _CacheFiles(CompileResultCacheImpl):
    _locator_classes: list[type[object]] = [_ByContent]  # noqa: RUF012


class _SharedFiles(CompileResultCacheImpl):
    _locator_classes: list[type[object]] = [_Shared]  # noqa: RUF012


class _SharedCache(FunctionCache):
    _impl_class = _SharedFiles


class _KernelCache(FunctionCache):
    """Looks for a kernel among those that are shared, then in the user's own cache, and says when it is compiled."""

    _impl_class = _CacheFiles

    def __init__(self, function: Callable[..., Any]) -> None:
        cast("Any", super()).__init__(function)
        self._shared = cast("Any", _SharedCache)(function) if _SHARED is not None else None

    def load_overload(self, signature: Any, target: Any) -> Any:
        found = self._shared.load_overload(signature, target) if self._shared is not None else None
        if found is None:
            found = cast("Any", super()).load_overload(signature, target)
        if found is None:
            compiling()
        return found

    def save_overload(self, signature: Any, made: Any) -> None:
        cast("Any", super()).save_overload(signature, made)
        compiled()


def share() -> Any:
    """Copy what is compiled to the folder that is shared, if there is one; return the folder in which kernels are."""
    return fill_shared(_COMPILER, _FOLDER) or _FOLDER


def stored() -> set[str]:
    """Return the names of the compiled kernels, one for each combination of types."""
    return {path.stem for folder in (_FOLDER, _SHARED) if folder is not None for path in folder.glob("*.nbc")}


class _NoEnvironment:
    """Generates code as usual, but leaves out what only a function that Python can call has."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: the environment is what Python objects are made from, and parts make none."""


class _PartLibrary(JITCodeLibrary):
    """The code of a part, which is optimized and made machine code where it is linked: once, in the kernel.

    Otherwise what is called through four functions is optimized four times, and machine code is made that nobody calls.
    """

    @property
    def codegen(self) -> Any:
        return _NoEnvironment(self._codegen)

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        cast("Any", self)._finalize_dynamic_globals()
        self._final_module.__library = weakref.proxy(self)
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0


class _PartCompiler(Compiler):
    """Compiles parts."""

    def define_pipelines(self) -> Any:
        codegen = self.state.targetctx.codegen()
        self.state.library = cast("Any", _PartLibrary)(codegen, self.state.func_id.func_qualname)
        self.state.library.enable_object_caching()
        return cast("Any", super()).define_pipelines()


def _trailing_zeros(bits: Any) -> int:
    """Return the place of the lowest bit that is set."""
    return (int(bits) & -int(bits)).bit_length() - 1


# An instruction, which cannot be called where nothing is compiled.
trailing_zeros: Any = _trailing_zeros if os.environ.get("NUMBA_DISABLE_JIT") == "1" else numbers.trailing_zeros


def kernel(function: F) -> F:
    """Compile a serial kernel: without the interpreter's lock, results kept on disk, arithmetic as written."""
    compiled: Any = _njit(nogil=True, fastmath=False, no_cfunc_wrapper=True)(function)
    if hasattr(compiled, "get_call_template"):  # else nothing is compiled
        compiled._cache = cast("Any", _KernelCache)(function)
    return cast("F", compiled)


def part(function: F) -> F:
    """Compile what only kernels call: without wrappers for Python, which halves the time to compile."""
    return cast("F", _inside(function))


def lean(function: F) -> F:
    """Compile a part that makes no arrays, nor calls what does: those it is given are not counted.

    Counting who holds an array takes a locked step each time it is handed on, which small partitions feel.
    """
    return cast("F", _inside(function, _nrt=False))


def inlined(function: F) -> F:
    """Compile a lean part into whoever calls it, which takes longer to compile where many do.

    Else every call hands over dozens of arrays, which takes longer than what is done with a small partition.
    """
    return cast("F", _inside(function, _nrt=False, forceinline=True))


def hook(function: F) -> F:
    """Compile a lean part that only some kinds of work need: kernels call it through its address, where they have one.

    It takes five bundles and three numbers and returns a number. It is compiled, or read from the cache, when its
    address is asked for.
    """
    options = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
    compiled: Any = _njit(nogil=True, fastmath=False, **options)(function)
    if hasattr(compiled, "get_call_template"):  # else nothing is compiled
        compiled._cache = cast("Any", _KernelCache)(function)
    return cast("F", compiled)


def address_of(hook: Any, *bundles: Any) -> Any:
    """Return where kernels call a hook that takes such bundles."""
    if not hasattr(hook, "get_call_template"):
        return hook
    types = (*(_typeof(bundle) for bundle in bundles), *[numba.types.int64] * 3)
    hook.compile(types)
    made = hook.overloads[types]
    return made.library.get_pointer_to_function(made.fndesc.llvm_func_name)


@intrinsic
def _call_hook(_context, address, a, b, c, d, e, x, y, z):  # type: ignore[no-untyped-def]
    int64 = numba.types.int64
    types = (a, b, c, d, e, int64, int64, int64)

    def call(context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        kind = context.call_conv.get_function_type(int64, types)
        pointer = builder.inttoptr(given[0], kind.as_pointer())
        # A hook raises nothing, as all parts.
        _, returned = context.call_conv.call_function(builder, pointer, int64, types, given[1:])
        return returned

    return int64(int64, *types), call


def _call_plainly(function: Any, *given: Any) -> Any:
    return function(*given)


call_hook: Any = _call_plainly if os.environ.get("NUMBA_DISABLE_JIT") == "1" else _call_hook


def _inside(function: Callable[..., Any], **options: Any) -> Any:
    """Compile for each combination of types, but not again for each number that is written out where it is called."""
    options |= {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    options["pipeline_class"] = _PartCompiler
    compiled: Any = _njit(nogil=True, fastmath=False, **options)(function)
    found = getattr(compiled, "get_call_template", None)
    if found is not None:  # else nothing is compiled
        compiled.get_call_template = lambda args, kws: found(tuple(map(numba.types.unliteral, args)), kws)
    return compiled


__all__ = ["address_of", "call_hook", "hook", "inlined", "kernel", "lean", "part", "share", "stored", "trailing_zeros"]
