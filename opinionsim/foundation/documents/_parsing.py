"""YAML and JSON texts as plain values, with the line of every value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import lru_cache
from typing import Any

import yaml

from opinionsim.errors import SpecError

#: Place of a value in a document: mapping keys (as text) and list positions, outermost first.
KeyPath = tuple[str | int, ...]

#: Limit on expanded aliases, by which a small file can stand for an enormous one; no real document comes near it.
_MAX_NODES = 2_000_000

#: Texts of more characters are not kept once they have been read.
_LONGEST_KEPT = 100_000

_CORE = "tag:yaml.org,2002:"
_CORE_TAGS = frozenset(_CORE + name for name in ("str", "int", "float", "bool", "null", "seq", "map", "merge"))


class _Loader(yaml.SafeLoader):
    """YAML with the scalar rules of version 1.2: ``on`` and ``2020-01-01`` are text, ``1e-3`` is a number."""


#: Replaces the inherited rules of version 1.1.
_Loader.yaml_implicit_resolvers = {}

_FLOAT = r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"

for _name, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", _FLOAT, "-+.0123456789"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(_CORE + _name, re.compile(rf"^(?:{_pattern})$"), list(_first))


def _construct_int(loader: _Loader, node: yaml.ScalarNode) -> int:
    """An integer in decimal digits; a leading zero does not mean base eight."""
    return int(loader.construct_scalar(node))


def _construct_float(loader: _Loader, node: yaml.ScalarNode) -> float:
    """A number of YAML 1.2; infinities and NaN are left to the model to refuse by field."""
    text = str(loader.construct_scalar(node)).lower()
    return float(text.replace(".inf", "inf").replace(".nan", "nan"))


_Loader.add_constructor(_CORE + "int", _construct_int)
_Loader.add_constructor(_CORE + "float", _construct_float)


def key_text(key: Any) -> str:
    """A mapping key as JSON spells it."""
    return key if isinstance(key, str) else json.dumps(key)


def _spelled_key(loader: _Loader, node: yaml.Node) -> str:
    """A key node as JSON spells its value; a merge key has no value and stays ``<<``."""
    return "<<" if node.tag == _CORE + "merge" else key_text(loader.construct_object(node))


def _node_lines(loader: _Loader, node: yaml.Node, path: KeyPath = ()) -> Iterator[tuple[KeyPath, int]]:
    """Key paths of a node tree with the line of the key, or of the list item, that introduces each."""
    if not path:
        yield (), node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, child in node.value:
            inner: KeyPath = (*path, _spelled_key(loader, key))
            yield inner, key.start_mark.line + 1
            yield from _node_lines(loader, child, inner)
    elif isinstance(node, yaml.SequenceNode):
        for position, child in enumerate(node.value):
            yield (*path, position), child.start_mark.line + 1
            yield from _node_lines(loader, child, (*path, position))


def _check_node(loader: _Loader, node: yaml.Node, sizes: dict[int, int]) -> int:
    """Refuse tags, duplicate keys and loops; return the number of nodes with aliases expanded."""
    known = sizes.get(id(node))
    if known is not None:
        if known == 0:
            raise _marked(node, "an alias refers to a value that contains it")
        return known
    sizes[id(node)] = 0
    if node.tag not in _CORE_TAGS:
        tag = node.tag.replace(_CORE, "!!")
        raise _marked(node, f"the tag {tag} is not allowed; only plain values, lists and mappings are allowed")
    size = 1
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, child in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _CORE + "null":
                raise _marked(key, "a key must be a word or a number")
            spelled = _spelled_key(loader, key)
            if spelled in seen:
                raise _marked(key, f"duplicate key {spelled!r}, first given on line {seen[spelled]}")
            seen[spelled] = key.start_mark.line + 1
            size += _check_node(loader, child, sizes)
    elif isinstance(node, yaml.SequenceNode):
        size += sum(_check_node(loader, child, sizes) for child in node.value)
    if size > _MAX_NODES:
        raise _marked(node, "aliases expand to more than two million values")
    sizes[id(node)] = size
    return size


def _marked(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


def parse_value(text: str, name: str = "value") -> Any:
    """Read one value in the spelling of a document, as after ``--set a.b=``.

    Parameters
    ----------
    text : str
        YAML; empty means null.
    name : str
        Name of the text in errors.

    Raises
    ------
    SpecError
        If the text is not valid YAML.
    """
    return deepcopy((_parsed if len(text) <= _LONGEST_KEPT else _parsed.__wrapped__)(text, name))


@lru_cache(maxsize=64)
def _parsed(text: str, name: str) -> Any:
    """The value of a text; kept, for reading the same personas and topics again takes longer than a small run."""
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _check_node(loader, node, {})
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{name}:{mark.line + 1}" if mark else name
        raise SpecError(f"{place}: {_sentence(error)}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SpecError(f"{name}:{line}: contains a control character; expected a text file") from None
    except RecursionError:
        raise SpecError(f"{name}: values are nested too deeply") from None
    except ValueError:
        raise SpecError(f"{name}: contains a number with too many digits") from None


def _sentence(error: yaml.MarkedYAMLError) -> str:
    """The message of a YAML error on one line."""
    if isinstance(error, (yaml.scanner.ScannerError, yaml.parser.ParserError, yaml.composer.ComposerError)):
        said = ", ".join(part for part in (error.context, error.problem) if part)
        return f"not valid YAML: {' '.join(said.split())}"
    return " ".join((error.problem or "cannot be read").split())


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a number")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) < len(pairs):
        names = [key for key, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"duplicate key {repeated!r}")
    return built


def parse_json(text: str, name: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise SpecError(f"{name}:{error.lineno}: not valid JSON: {error.msg}") from None
    except RecursionError:
        raise SpecError(f"{name}: values are nested too deeply") from None
    except ValueError as error:
        raise SpecError(f"{name}: not valid JSON: {error}") from None


def lines_of(text: str) -> dict[KeyPath, int]:
    """Line of every value of a YAML or JSON text, from 1, by key path; empty where YAML cannot read the text."""
    if not text:
        return {}
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        return dict(_node_lines(loader, node)) if node is not None else {}
    except yaml.YAMLError:
        # A JSON document may hold characters that YAML refuses, such as tabs; it then has no line numbers.
        return {}
    finally:
        loader.dispose()
