"""Queries on respondents: a small language of comparisons that is parsed and never executed."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

import numpy as np

from opinionsim.errors import SurveyError

#: Values of a variable, one for each respondent: floats with NaN, or objects, texts and None.
Column: TypeAlias = np.ndarray
#: Which respondents meet a condition.
Mask: TypeAlias = np.ndarray
#: ``condition(columns, known) -> Mask``, as :meth:`Query.mask` takes them.
Condition: TypeAlias = Callable[[Mapping[str, Column], Mapping[str, Collection[str]]], Mask]

_FORMS = "valid are ==, !=, <, <=, >, >=, in and not in between a variable and values, joined by and, or, not"
_LONGEST = 10_000
_DEEPEST = 50
#: Maximum number of values that an error lists.
_MOST_SHOWN = 60
#: Texts in quotes, names in backticks, and the signs that stand for and, or.
_TOKENS = re.compile(r"""('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|`([^`]*)`|(&|\|)""")

_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}
_EQUALITY = (ast.Eq, ast.NotEq)
_JOINED: Mapping[type[ast.boolop], Callable[..., Mask]] = {ast.And: np.all, ast.Or: np.any}


class Query:
    """A condition on the original values of a respondent.

    An example is ``age < 40 and (state == 'Ohio' or party in ['left', 'none'])``. A query can use comparisons,
    including chained ones, ``in`` and ``not in`` with lists, parentheses, and ``and``, ``or`` and ``not``, also written
    ``&``, ``|`` and ``~`` with the same precedence. Put names that are not plain words in backticks. Calls,
    attributes and arithmetic are not allowed. A missing value equals nothing and is neither less nor greater, so ``!=``
    and ``not in`` are true for it.

    Parameters
    ----------
    text : str
        The query.

    Raises
    ------
    SurveyError
        If the text is not a valid query.
    """

    def __init__(self, text: str) -> None:
        if not isinstance(text, str) or not text.strip():
            raise SurveyError(f'a query must be a text such as "age < 40"; got {text!r}')
        if len(text) > _LONGEST:
            raise SurveyError(f"a query has at most {_LONGEST} characters; got {len(text)}")
        self.text = text
        self._names: dict[str, str] = {}
        prefix = "quoted"
        while prefix in text:
            prefix += "_"

        def plain(match: re.Match[str]) -> str:
            if match[1]:
                return match[1]
            if match[3]:
                return " and " if match[3] == "&" else " or "
            self._names[f"{prefix}{len(self._names)}"] = match[2]
            return f" {prefix}{len(self._names) - 1} "

        source = _TOKENS.sub(plain, text).replace("\n", " ").strip()
        try:
            with warnings.catch_warnings():
                # An unknown escape in a text in quotes is no matter of the user's.
                warnings.simplefilter("ignore")
                self._tree = ast.parse(source, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self._error("cannot be read") from None
        self._condition = self._read(self._tree, _DEEPEST)

    def _error(self, problem: str) -> SurveyError:
        shown = self.text if len(self.text) <= 80 else self.text[:79] + "…"
        return SurveyError(f"query {shown!r} {problem}; {_FORMS}")

    def _read(self, node: ast.expr, depth: int) -> Condition:
        """Read the condition of a node; refuse other nodes, and conditions nested more than `depth` times."""
        if not depth:
            raise self._error(f"is nested more than {_DEEPEST} times")
        match node:
            case ast.BoolOp(op=op, values=values):
                parts, joined = [self._read(value, depth - 1) for value in values], _JOINED[type(op)]
                return lambda *given: joined([part(*given) for part in parts], axis=0)
            case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
                denied = self._read(operand, depth - 1)
                return lambda *given: ~denied(*given)
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                pairs = list(zip(ops, [left, *comparators], comparators, strict=False))
                for pair in pairs:
                    self._check_pair(*pair)
                return lambda *given: np.all([self._compare(*pair, *given) for pair in pairs], axis=0)
        raise self._error(f"has {self._spell(node)} instead of a comparison")

    def _check_pair(self, op: ast.cmpop, before: ast.expr, after: ast.expr) -> None:
        if isinstance(op, (ast.In, ast.NotIn)):
            if not isinstance(before, ast.Name) or not isinstance(after, (ast.List, ast.Tuple)) or not after.elts:
                raise self._error("needs a variable before 'in' and a list of values after it")
            for element in after.elts:
                self._constant(element)
            return
        if type(op) not in _COMPARISONS:
            raise self._error("has 'is'")
        values = [side for side in (before, after) if not isinstance(side, ast.Name)]
        if len(values) == 2:
            raise self._error(f"compares {self._spell(before)} with {self._spell(after)}, but neither is a variable")
        for side in values:
            self._constant(side)

    def _constant(self, node: ast.expr) -> str | float:
        """A text or number."""
        sign = 1.0
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            sign, node = -1.0, node.operand
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                raise self._error("has a minus before a text")
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, int, float)):
            if isinstance(node.value, str):
                return node.value
            if not isinstance(node.value, bool):
                try:
                    return sign * float(node.value)
                except OverflowError:
                    pass
        raise self._error(f"has {self._spell(node)} instead of a value; write a number or a text in quotes")

    def _spell(self, node: ast.expr) -> str:
        text = ast.unparse(node)
        for placeholder, name in self._names.items():
            text = re.sub(rf"\b{placeholder}\b", f"`{name}`".replace("\\", r"\\"), text)
        return text if len(text) <= 60 else text[:59] + "…"

    def _name(self, node: ast.Name) -> str:
        return self._names.get(node.id, node.id)

    def check(self, variables: Collection[str]) -> None:
        """Refuse names that are not variables.

        Raises
        ------
        SurveyError
            If a name is unknown; the error lists the variables.
        """
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Name) and self._name(node) not in variables:
                unknown = self._name(node)
                raise SurveyError(f"query {self.text!r}: unknown variable {unknown!r}; valid: {', '.join(variables)}")

    def mask(self, columns: Mapping[str, Column], known: Mapping[str, Collection[str]]) -> Mask:
        """Respondents for whom the query is true.

        Parameters
        ----------
        columns : mapping of str to ndarray, shape (n,)
            Values by variable: floats, with NaN if missing, or texts, with None if missing.
        known : mapping of str to collection of str
            Values that each variable of texts can have.

        Returns
        -------
        ndarray of bool, shape (n,)

        Raises
        ------
        SurveyError
            If a variable is unknown, a text is compared with a number or by order, or a variable cannot have a given
            text as its value.
        """
        self.check(columns)
        return self._condition(columns, known)

    def _compare(
        self,
        op: ast.cmpop,
        before: ast.expr,
        after: ast.expr,
        columns: Mapping[str, Column],
        known: Mapping[str, Collection[str]],
    ) -> Mask:
        sides = [before, *(after.elts if isinstance(after, (ast.List, ast.Tuple)) else [after])]
        names = [self._name(side) for side in sides if isinstance(side, ast.Name)]
        values = [self._constant(side) for side in sides if not isinstance(side, ast.Name)]
        self._check_sorts(op, names, values, columns, known)
        if isinstance(op, (ast.In, ast.NotIn)):
            found: Mask = np.any([columns[names[0]] == value for value in values], axis=0)
            return found if isinstance(op, ast.In) else ~found
        first, second = (columns[self._name(side)] if isinstance(side, ast.Name) else values[0] for side in sides)
        if len(names) == 2 and columns[names[0]].dtype == object:
            # None equals None for Python; a missing value equals nothing.
            equal: Mask = np.asarray(first == second) & np.array([value is not None for value in columns[names[0]]])
            return equal if isinstance(op, ast.Eq) else ~equal
        return np.asarray(_COMPARISONS[type(op)](first, second), dtype=bool)

    def _check_sorts(
        self,
        op: ast.cmpop,
        names: list[str],
        values: list[str | float],
        columns: Mapping[str, Column],
        known: Mapping[str, Collection[str]],
    ) -> None:
        """Refuse a comparison of texts with numbers, of texts by order, and with texts that do not exist."""
        for name in names:
            if columns[name].dtype != object:
                text = next((value for value in values if isinstance(value, str)), None)
                if text is not None or any(columns[other].dtype == object for other in names):
                    got = f"the text {text!r}" if text is not None else "another that contains texts"
                    raise SurveyError(f"query {self.text!r} compares {name!r}, which contains numbers, with {got}")
                continue
            valid = ", ".join(map(repr, sorted(known[name])[:_MOST_SHOWN])) + ", …" * (len(known[name]) > _MOST_SHOWN)
            if not isinstance(op, (*_EQUALITY, ast.In, ast.NotIn)):
                raise SurveyError(
                    f"query {self.text!r} orders {name!r}, which contains texts; valid: ==, !=, in and not in, "
                    f"with {valid}"
                )
            for value in values:
                if value not in known[name]:
                    shown = repr(value) if isinstance(value, str) else f"the number {value:g}"
                    raise SurveyError(f"query {self.text!r}: {name!r} is never {shown}; valid: {valid}")
