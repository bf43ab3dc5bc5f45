"""Reading YAML and JSON documents, and checking them against a model with errors a person can act on.

Everything a user writes by hand (specifications, topics, personas) comes through here, so that every
mistake is reported the same way: file, line, field, what is wrong and what would be valid.
"""

from __future__ import annotations

import json
import math
import re
import types
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from opinionsim.errors import SpecError

__all__ = [
    "Document",
    "DocumentModel",
    "KeyPath",
    "fields_at",
    "is_one_line",
    "parse_value",
    "read_document",
    "show_value",
    "spell_path",
    "validate",
]

#: Where a value sits in a document: mapping keys (as text) and list positions, outermost first.
KeyPath = tuple[str | int, ...]

_Model = TypeVar("_Model", bound=BaseModel)

#: Aliases can make a small file stand for an enormous one; nothing a person writes comes near this.
_MAX_NODES = 2_000_000

_CORE = "tag:yaml.org,2002:"
_CORE_TAGS = frozenset(_CORE + name for name in ("str", "int", "float", "bool", "null", "seq", "map", "merge"))


class DocumentModel(BaseModel):
    """Base of everything that is read from a document: frozen, strict, unknown fields refused.

    Attribute docstrings become the descriptions of the JSON Schema.
    """

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )


class _Loader(yaml.SafeLoader):
    """YAML with the scalar rules of version 1.2: ``on`` and ``2020-01-01`` are text, ``1e-3`` is a number."""


#: Rules of its own, not those of version 1.1 that it would inherit.
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
    """Decimal digits only: a leading zero is no sign of base eight."""
    return int(loader.construct_scalar(node))


def _construct_float(loader: _Loader, node: yaml.ScalarNode) -> float:
    """A number of YAML 1.2; infinities and NaN are left to the model to refuse by field."""
    text = str(loader.construct_scalar(node)).lower()
    return float(text.replace(".inf", "inf").replace(".nan", "nan"))


_Loader.add_constructor(_CORE + "int", _construct_int)
_Loader.add_constructor(_CORE + "float", _construct_float)


@dataclass(frozen=True)
class Document:
    """A mapping a user wrote, with the place of every value in it.

    Attributes
    ----------
    value : dict
        The content.
    path : Path or None
        The file it was read from; None for a mapping given in Python.
    name : str
        What errors call a mapping that came from no file.
    origins : tuple of (KeyPath, str)
        Values that came from elsewhere than the file, and what to call that place; the latest wins.
    """

    value: dict[str, Any]
    path: Path | None = None
    name: str = ""
    origins: tuple[tuple[KeyPath, str], ...] = ()
    _within: KeyPath = ()
    _text: str = field(default="", repr=False, compare=False)

    @cached_property
    def _lines(self) -> dict[KeyPath, int]:
        """Line of every value, from 1. Computed only when an error needs it."""
        if not self._text:
            return {}
        loader = _Loader(self._text)
        try:
            node = loader.get_single_node()
            return dict(_node_lines(loader, node)) if node is not None else {}
        except yaml.YAMLError:
            # A JSON document may hold what YAML refuses, a tab for one; it then has no line numbers.
            return {}
        finally:
            loader.dispose()

    def line(self, keys: Sequence[str | int]) -> int | None:
        """Line of the value at `keys` or of the nearest enclosing one, from 1; None outside a file."""
        path = (*self._within, *keys)
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path)

    def locate(self, keys: Sequence[str | int] = ()) -> str:
        """Place of the value at `keys`: ``FILE:LINE``, the name of another origin, or nothing."""
        path = tuple(keys)
        for prefix, origin in reversed(self.origins):
            if path[: len(prefix)] == prefix:
                return origin
        if self.path is None:
            return self.name
        line = self.line(path)
        return str(self.path) if line is None else f"{self.path}:{line}"

    def error(self, keys: Sequence[str | int], problem: str) -> SpecError:
        """An error about the value at `keys`, in the common form: place, field, problem."""
        place, spelled = self.locate(keys), spell_path(keys)
        # A place such as "--set prompts" names the field already.
        named = bool(spelled) and f" {place}".endswith(f" {spelled}")
        return SpecError(": ".join(part for part in (place, "" if named else spelled, problem) if part))

    def with_value(self, value: dict[str, Any], *origins: tuple[KeyPath, str]) -> Document:
        """The same document with other content, some of which came from the places in `origins`."""
        return replace(self, value=value, origins=(*self.origins, *origins))

    def section(self, *keys: str | int) -> Document:
        """The mapping at `keys` as a document of its own, with the lines it has in this one."""
        value: Any = self.value
        for key in keys:
            value = value[key]
        if not isinstance(value, dict):
            raise self.error(keys, f"must be a mapping of fields; got {show_value(value)}")
        origins = tuple((path[len(keys) :], origin) for path, origin in self.origins if path[: len(keys)] == keys)
        return replace(self, value=value, origins=origins, _within=(*self._within, *keys))


def is_one_line(text: str) -> bool:
    """Whether a text has neither line breaks nor other control characters."""
    return not any(unicodedata.category(character) in ("Cc", "Zl", "Zp") for character in text)


def spell_path(keys: Sequence[str | int]) -> str:
    """A key path as people write it: ``measurement.texts[1]``."""
    spelled = ""
    for key in keys:
        spelled += f"[{key}]" if isinstance(key, int) else f".{key}" if spelled else key
    return spelled


def _key_text(key: Any) -> str:
    """A mapping key as JSON spells it."""
    return key if isinstance(key, str) else json.dumps(key)


def _spelled_key(loader: _Loader, node: yaml.Node) -> str:
    """A key node as JSON spells its value; a merge key stands for no value."""
    return "<<" if node.tag == _CORE + "merge" else _key_text(loader.construct_object(node))


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
    """Refuse tags, duplicate keys and loops; return how many nodes the tree stands for, aliases expanded."""
    known = sizes.get(id(node))
    if known is not None:
        if known == 0:
            raise _marked(node, "an alias refers to a value that contains it")
        return known
    sizes[id(node)] = 0
    if node.tag not in _CORE_TAGS:
        tag = node.tag.replace(_CORE, "!!")
        raise _marked(node, f"the tag {tag} is not allowed; only plain values, lists and mappings are")
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


def _parse(text: str, name: str) -> Any:
    """The value of a YAML text; None when it holds nothing. Errors name `name` and the line."""
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
        raise SpecError(f"{name}:{line}: holds a control character; a text file is expected") from None
    except RecursionError:
        raise SpecError(f"{name}: values are nested too deeply") from None
    except ValueError:
        raise SpecError(f"{name}: holds a number with too many digits") from None


def _sentence(error: yaml.MarkedYAMLError) -> str:
    """What a YAML error says, on one line."""
    if isinstance(error, (yaml.scanner.ScannerError, yaml.parser.ParserError, yaml.composer.ComposerError)):
        said = ", ".join(part for part in (error.context, error.problem) if part)
        return f"not valid YAML: {' '.join(said.split())}"
    return " ".join((error.problem or "cannot be read").split())


def parse_value(text: str, name: str = "value") -> Any:
    """Read one value the way a document spells it, as given after ``--set a.b=``.

    Parameters
    ----------
    text : str
        YAML; empty means null.
    name : str
        What to call the text in an error.

    Raises
    ------
    SpecError
        If the text is not valid YAML.
    """
    return _parse(text, name)


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a number")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) < len(pairs):
        names = [key for key, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"duplicate key {repeated!r}")
    return built


def _parse_json(text: str, name: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise SpecError(f"{name}:{error.lineno}: not valid JSON: {error.msg}") from None
    except RecursionError:
        raise SpecError(f"{name}: values are nested too deeply") from None
    except ValueError as error:
        raise SpecError(f"{name}: not valid JSON: {error}") from None


def read_document(path: str | Path) -> Document:
    """Read a YAML file, or a JSON file when its name ends in ``.json``.

    Parameters
    ----------
    path : str or Path
        The file; UTF-8.

    Returns
    -------
    Document
        Its content, which is a mapping.

    Raises
    ------
    SpecError
        If the file is missing, unreadable, empty, not text, not valid, repeats a key, or is no mapping.
    """
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SpecError(f"{path}: not a text file; UTF-8 is expected") from None
    except FileNotFoundError:
        raise SpecError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise SpecError(f"{path}: is a folder; a file is expected") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SpecError(f"{str(path)!r}: cannot be read: {reason}") from None
    value = _parse_json(text, str(path)) if path.suffix == ".json" and text.strip() else _parse(text, str(path))
    if value is None:
        raise SpecError(f"{path}: is empty; a mapping of fields is expected")
    if not isinstance(value, dict):
        kind = "a list" if isinstance(value, list) else f"the single value {show_value(value)}"
        raise SpecError(f"{path}:1: holds {kind}; a mapping of fields is expected")
    return Document(value, path, str(path), _text=text)


def validate(model_class: type[_Model], source: Document | Mapping[str, Any], name: str = "") -> _Model:
    """Check a document against a model.

    Values are checked as JSON is: a list may fill a tuple and an enum is given by its value, but text is
    never taken for a number nor a number for text.

    Parameters
    ----------
    model_class : type of BaseModel
        What the document must be; :class:`DocumentModel` is a fitting base.
    source : Document or mapping
        The content.
    name : str
        What errors call a bare mapping.

    Returns
    -------
    BaseModel
        The instance.

    Raises
    ------
    SpecError
        One line a problem: ``FILE:LINE: field: what is wrong; valid: ...``.
    """
    document = source if isinstance(source, Document) else Document(dict(source), name=name)
    try:
        plain = json.dumps(document.value)
    except (TypeError, ValueError, RecursionError) as error:
        raise document.error((), f"holds something that is no plain value, list or mapping: {error}") from None
    for keys, number in _non_finite(document.value):
        raise document.error(keys, f"must be a finite number; got {number}")
    try:
        return model_class.model_validate_json(plain)
    except ValidationError as failure:
        value = json.loads(plain)
        problems = _problems(model_class, [dict(error) for error in failure.errors(include_url=False)], value)
        raise SpecError("\n".join(str(document.error(keys, text)) for keys, text in problems)) from None


#: Errors that say only that a value is of another sort than a branch of a union wants, and that sort in words.
_SORTS = {
    "string_type": "text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "tuple_type": "a list",
    "list_type": "a list",
    "model_type": "a mapping of fields",
    "model_attributes_type": "a mapping of fields",
    "dict_type": "a mapping",
    "none_required": "null",
}


def _is_mismatch(error: Mapping[str, Any]) -> bool:
    """Whether an error is about the sort of a value, or only follows from others, and not about its content."""
    kind, given = error["type"], error["input"]
    if kind == "too_short":
        return len(given) >= int(error["ctx"]["min_length"])
    return kind in _SORTS or (kind == "literal_error" and isinstance(given, (dict, list)))


def _problems(
    model_class: type[BaseModel], errors: Sequence[dict[str, Any]], value: Any
) -> Iterator[tuple[KeyPath, str]]:
    """What to tell the user; of the branches of a union, only the one whose sort the value has.

    A union reports an error for every branch it tried. A complaint about the sort of a value is noise when
    another branch accepted the sort and complains about the content; when all complain about the sort,
    they are one problem.
    """
    located = [(_trace(error["loc"], value, keep_last=error["type"] == "missing"), error) for error in errors]
    places = {keys for keys, _ in located}
    content = {keys for keys, error in located if not _is_mismatch(error)}
    sorts: dict[KeyPath, list[dict[str, Any]]] = {}
    for keys, error in located:
        if not _is_mismatch(error):
            yield _describe(model_class, keys, error, value)
        elif keys not in content and not any(keys == place[: len(keys)] != place for place in places):
            sorts.setdefault(keys, []).append(error)
    for keys, group in sorts.items():
        wanted = dict.fromkeys(_SORTS[error["type"]] for error in group if error["type"] in _SORTS)
        if len(wanted) > 1:
            yield keys, f"must be {' or '.join(wanted)}; got {show_value(group[0]['input'])}"
        else:
            yield _describe(model_class, keys, group[0], value)


def _non_finite(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, float]]:
    """Infinities and NaN anywhere in a value."""
    if isinstance(value, float) and not math.isfinite(value):
        yield path, value
    elif isinstance(value, Mapping):
        for key, child in value.items():
            yield from _non_finite(child, (*path, _key_text(key)))
    elif isinstance(value, (list, tuple)):
        for position, child in enumerate(value):
            yield from _non_finite(child, (*path, position))


def _describe(model_class: type[BaseModel], keys: KeyPath, error: Mapping[str, Any], value: Any) -> tuple[KeyPath, str]:
    """Where a validation error lies in the user's own document, and what to say about it."""
    kind, given, context = error["type"], error["input"], error.get("ctx", {})
    got = f"; got {show_value(given)}"
    if kind == "extra_forbidden":
        valid = fields_at(model_class, keys[:-1], value)
        if keys[-1] in valid:
            # Each of two forms has some of the fields given.
            others = ", ".join(str(key) for key in _value_at(value, keys[:-1]) if key != keys[-1])
            return keys, f"cannot be given together with {others}" if others else "needs another field beside it"
        return keys, f"unknown field{_suggest(str(keys[-1]), valid)}; valid: {', '.join(valid)}"
    if kind == "missing":
        return keys, "is required and missing"
    if kind in ("literal_error", "enum"):
        choices = re.findall(r"'([^']*)'", context["expected"])
        return keys, f"unknown value {show_value(given)}{_suggest(str(given), choices)}; valid: {', '.join(choices)}"
    if kind == "union_tag_invalid":
        choices = re.findall(r"'([^']*)'", context["expected_tags"])
        tag = str(context["tag"])
        return (*keys, context["discriminator"].strip("'")), (
            f"unknown value {tag!r}{_suggest(tag, choices)}; valid: {', '.join(choices)}"
        )
    if kind == "union_tag_not_found":
        tag = context["discriminator"].strip("'")
        choices = _tags_at(model_class, keys, tag, value)
        return (*keys, tag), f"is required and missing; valid: {', '.join(choices)}"
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        valid = fields_at(model_class, keys, value)
        return keys, f"must be a mapping of fields{got}" + (f"; valid: {', '.join(valid)}" if valid else "")
    if kind == "value_error":
        return keys, str(context["error"])
    if kind == "json_invalid":
        return (), "holds text that is not valid Unicode, or values nested too deeply"
    return keys, _plain(kind, context, str(error["msg"])) + got


def _value_at(value: Any, keys: KeyPath) -> Any:
    """The value at a key path that a validator has been to."""
    for key in keys:
        value = value[key]
    return value


def _plain(kind: str, context: Mapping[str, Any], fallback: str) -> str:
    """The requirement behind a simple validation error, in words."""
    if kind in _SORTS:
        return f"must be {_SORTS[kind]}"
    if kind.startswith("int_"):
        return "must be a whole number"
    wording = {
        "float_parsing": "must be a number",
        "greater_than_equal": f"must be at least {context.get('ge')}",
        "greater_than": f"must be greater than {context.get('gt')}",
        "less_than_equal": f"must be at most {context.get('le')}",
        "less_than": f"must be less than {context.get('lt')}",
        "too_short": f"must have at least {_entries(context.get('min_length'))}",
        "too_long": f"must have at most {_entries(context.get('max_length'))}",
        "string_too_short": "must not be empty",
        "string_pattern_mismatch": f"must match the pattern {context.get('pattern')}",
    }
    return wording.get(kind, fallback.replace("Input should", "must"))


def _entries(count: object) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def _trace(location: Sequence[str | int], value: Any, *, keep_last: bool) -> KeyPath:
    """A validator's location as a key path of the document: names of union branches fall out."""
    keys: list[str | int] = []
    for position, element in enumerate(location):
        if isinstance(element, int) and isinstance(value, list):
            value = value[element] if element < len(value) else None
        elif isinstance(value, dict) and element in value:
            value = value[str(element)]
        elif not (keep_last and position == len(location) - 1):
            continue
        keys.append(element)
    return tuple(keys)


def _members(annotation: Any) -> Iterator[Any]:
    """The types an annotation stands for, unions and annotations taken apart."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _members(get_args(annotation)[0])
    elif origin in (Union, types.UnionType):
        for member in get_args(annotation):
            yield from _members(member)
    else:
        yield annotation


def _models_at(model_class: type[BaseModel], keys: KeyPath, value: Any) -> list[type[BaseModel]]:
    """The models that may stand at a key path, narrowed at every level by what the document selects."""
    candidates: list[Any] = [model_class]
    for key in keys:
        candidates = [
            member
            for candidate in _selected(candidates, value)
            for annotation in _annotations_of(candidate, key)
            for member in _members(annotation)
        ]
        inside = isinstance(value, dict) and key in value
        value = value[key] if inside or (isinstance(value, list) and isinstance(key, int)) else None
    return [c for c in _selected(candidates, value) if isinstance(c, type) and issubclass(c, BaseModel)]


def _annotations_of(candidate: Any, key: str | int) -> list[Any]:
    """What may stand under `key` of a type: a model's field, or the values of a list or mapping."""
    if isinstance(candidate, type) and issubclass(candidate, BaseModel):
        found = candidate.model_fields.get(str(key))
        return [found.annotation] if found else []
    return [argument for argument in get_args(candidate)[-2:] if argument is not Ellipsis][-1:]


def _selected(candidates: Sequence[Any], value: Any) -> list[Any]:
    """Of several models, those whose literal fields (a ``kind``) agree with the value."""
    chosen = []
    for candidate in candidates:
        if isinstance(candidate, type) and issubclass(candidate, BaseModel) and isinstance(value, dict):
            literals = {
                name: get_args(field.annotation)
                for name, field in candidate.model_fields.items()
                if get_origin(field.annotation) is Literal and len(get_args(field.annotation)) == 1
            }
            if any(name in value and value[name] not in allowed for name, allowed in literals.items()):
                continue
        chosen.append(candidate)
    return chosen


def fields_at(model_class: type[BaseModel], keys: KeyPath, value: Any) -> list[str]:
    """Names of the fields a document may have at a key path.

    Parameters
    ----------
    model_class : type of BaseModel
        What the document is.
    keys : KeyPath
        Where to look.
    value : Any
        The document's content, which decides between alternatives at every level.

    Returns
    -------
    list of str
        Empty where no fixed fields are expected.
    """
    return list(dict.fromkeys(name for model in _models_at(model_class, keys, value) for name in model.model_fields))


def _tags_at(model_class: type[BaseModel], keys: KeyPath, tag: str, value: Any) -> list[str]:
    """Values that `tag` may take in the models at a key path."""
    models = _models_at(model_class, keys, value)
    return [str(choice) for model in models for choice in get_args(model.model_fields[tag].annotation)]


def _suggest(given: str, choices: Sequence[str]) -> str:
    close = get_close_matches(given, choices, 1)
    return f" (did you mean {close[0]}?)" if close else ""


def show_value(value: Any, limit: int = 60) -> str:
    """A value as the user would write it, cut to a readable length."""
    if isinstance(value, str):
        text = repr(value)
    elif isinstance(value, float) and not math.isfinite(value):
        text = str(value)
    else:
        text = json.dumps(value, default=str)
    return text if len(text) <= limit else text[: limit - 1] + "…"
