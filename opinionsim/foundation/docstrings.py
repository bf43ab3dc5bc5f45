"""Docstrings as texts for users: those that Python keeps, and those that only sources have."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from contextlib import suppress
from functools import cache
from itertools import pairwise
from typing import Any


def docstring(target: Any) -> str:
    """The own docstring of a class or function; under ``python -OO``, which drops it, as its source has it, if any."""
    if sys.flags.optimize < 2:
        return inspect.cleandoc(target.__doc__ or "")
    defined = _definition(target)
    return (isinstance(defined, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(defined)) or ""


@cache
def field_docstrings(model: type) -> dict[str, str]:
    """Docstrings of the fields that a class itself defines, as far as there is a source; sources are slow to read."""
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in pairwise(ast.iter_child_nodes(_definition(model)))
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }


def _definition(target: Any) -> ast.AST:
    """The source of a class or function as a tree, an empty one where there is none."""
    with suppress(OSError, TypeError, SyntaxError):
        return ast.parse(textwrap.dedent(inspect.getsource(target))).body[0]
    return ast.Module([], [])
