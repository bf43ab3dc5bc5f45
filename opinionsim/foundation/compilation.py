"""Compiled kernels: plain Python functions that numba compiles on first use. numba is loaded only then."""

from __future__ import annotations

import gc
import logging
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from threading import Lock
from types import CodeType, FunctionType
from typing import Any, TypeVar

import numpy as np

from opinionsim.foundation.streams import digest

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: Functions that kernels call, not yet known to the compiler, and whether they make arrays.
_waiting: list[tuple[Callable[..., Any], bool]] = []
#: Held while functions are registered with the compiler, since several threads may compile at once.
_compiling = Lock()
_log = logging.getLogger(__name__)
#: The first and last versions of numba whose inner parts are known here, and replaced to compile and load in less time.
_KNOWN = ((0, 60), (0, 68))


def inlined(function: _Function, *, allocates: bool = False) -> _Function:
    """Mark a function that kernels call. It is plain Python when Python calls it, and compiled in a compiled kernel.

    The compiled code does not count references to arrays, because that takes time to compile and run. Mark a function
    that makes arrays, or passes on arrays made by another, with :data:`allocating` instead.
    """
    if function.__closure__:
        function.__qualname__ += f"-{_content(function)}"
    _waiting.append((function, allocates))
    # The sources are read now, as they are loaded: files may be edited while the process runs.
    sources(_room(function))
    return function


#: Marks a function that kernels call and that makes arrays.
allocating = partial(inlined, allocates=True)


def at(values, agent):  # type: ignore[no-untyped-def]
    """The value of an agent: its element of an array, or the number that applies to all agents."""
    return values[agent] if isinstance(values, np.ndarray) else values


@cache
def _teach_at() -> None:
    """Have the compiler choose between the two cases of :func:`at` by type: a number then costs nothing."""
    from numba import types
    from numba.extending import overload

    @overload(at)
    def chosen(values, agent):  # type: ignore[no-untyped-def]
        if isinstance(values, types.Array):
            return lambda values, agent: values[agent]
        return lambda values, agent: values


def _content(function: Callable[..., Any]) -> str:
    """Digest of a function that was made by another: its code, and all that it is closed over.

    Machine code has symbols by name. Two functions of one name that differ would be mixed up if one was compiled by
    another process, so names say what is in functions.
    """

    def spelled(value: Any) -> str:
        if isinstance(value, CodeType):
            parts = [value.co_code.hex(), value.co_name, *map(str, value.co_names), *map(spelled, value.co_consts)]
        elif isinstance(value, FunctionType):
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            parts = [value.__module__, value.__qualname__, spelled(value.__code__), *map(spelled, cells)]
        else:
            parts = [repr(value)]
        return digest(" ".join(parts))[:16]

    return spelled(function)


def _room(function: Callable[..., Any]) -> Path:
    """The folder whose modules a kernel may call: its room of this package, or the outermost package it belongs to."""
    folder = Path(function.__code__.co_filename).parent
    while (folder.parent / "__init__.py").exists() and folder.parent != Path(__file__).parents[1]:
        folder = folder.parent
    return folder


@cache
def sources(folder: Path) -> str:
    """Digest of this module and the modules in a folder and below it."""
    files = [*sorted(folder.rglob("*.py")), Path(__file__)]
    return digest("".join(file.read_text(encoding="utf-8") for file in files))[:12]


def compiled(kernel: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """Compile a kernel to machine code, which runs without the interpreter lock and stays on disk for later processes.

    Parameters
    ----------
    kernel : callable
        A function of arrays and numbers that calls nothing but numpy and functions marked :func:`inlined`.
        Undecorated, it is the readable reference. Both give the same bytes.
    name : str
        Name in the log: for each kernel that it compiles, ``opinionsim.foundation.compilation`` logs a line at
        level INFO.
    """
    with _compiling:
        return _compiled(kernel, name or kernel.__name__)


@cache
def _is_known() -> bool:
    """Whether the inner parts of the installed numba are known here; where they are not, that is said once."""
    from numba import version_info

    if _KNOWN[0] <= version_info.short <= _KNOWN[1]:
        return True
    first, last = (".".join(map(str, version)) for version in _KNOWN)
    warnings.warn(
        f"numba {version_info.string} is outside the versions {first} to {last} whose internals opinionsim replaces; "
        f"models give the same results, but compile and load more slowly. To avoid this, install numba {last}",
        stacklevel=2,
    )
    return False


@cache
def _compiled(kernel: Callable[..., Any], name: str) -> Callable[..., Any]:
    from numba import njit
    from numba.extending import register_jitable

    _teach_at()
    known = _is_known()
    # Nothing but kernels calls them, so that they need none of the wrappers by which Python and C call functions.
    inner = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _part} if known else {}
    while _waiting:
        function, allocates = _waiting.pop()
        register_jitable(forceinline=True, **inner, **({"_nrt": allocates} if known else {}))(function)
    # Machine code on disk is found by this name and by the time of the kernel's own file. The functions it calls are in
    # other files: with a digest of all sources in the name, outdated code is never used.
    kernel.__qualname__ += f"-{sources(_room(kernel))}-{_content(kernel)}"
    made: Any = njit(nogil=True, **({"no_cfunc_wrapper": True} if known else {}))(kernel)  # type: ignore[call-overload]
    with suppress(RuntimeError):  # no folder can be written to
        made.enable_caching()
        if known:
            _keep_well(made._cache)
    if known:
        made._compiler.compile = _told(name, made._compiler.compile)
    found: Callable[..., Any] = made
    return found


def _keep_well(cache: Any) -> None:
    """Have one process at a time keep machine code, and all find it and load it without what only the compiler needs.

    Numba gives what two keep at once the same name on disk, and imports many modules, of SciPy too, before it loads. It
    looks for what a kernel is closed over as pickled, which differs where sources came from bytecode; the name of a
    kernel says that already.
    """
    from filelock import FileLock
    from numba.core.runtime.nrt import rtsys

    save = cache.save_overload

    def save_alone(*given: Any) -> None:
        with FileLock(Path(cache.cache_path) / "opinionsim.lock"):
            save(*given)

    def load(signature: Any, target: Any) -> Any:
        rtsys.initialize(target)
        return cache._load_overload(signature, target)

    cache.save_overload, cache.load_overload = save_alone, load
    cache._index_key = lambda signature, codegen: (signature, codegen.magic_tuple())


def _told(name: str, compiling: Callable[..., Any]) -> Callable[..., Any]:
    """The compilation of a kernel, with a line to the log of this module, and in less time."""

    def told(*given: Any) -> Any:
        _log.info("compiling %s; later runs reuse the result", name)
        thresholds = gc.get_threshold()
        # Nothing is collected meanwhile: the compiler makes much and drops little of it.
        gc.set_threshold(0)
        try:
            return compiling(*given)
        finally:
            gc.set_threshold(*thresholds)

    # Python maps memory for all calls in this one at once, where it would else map and unmap some again and again.
    told.__code__ = told.__code__.replace(co_stacksize=2**16)
    return told


def _part(typing: Any, target: Any, _: None, *given: Any) -> Any:
    """The compiler of a function that kernels call: it is optimized and made machine code in the kernel alone."""
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler

    def finished(part: Any, *given: Any) -> None:
        part._finalized = True

    class Inner(JITCodeLibrary):
        codegen = property(lambda part: part)
        _optimize_final_module = _finalize_final_module = set_env = finished

    return Compiler(typing, target, Inner(target.codegen(), "part"), *given)  # type: ignore[no-untyped-call]
