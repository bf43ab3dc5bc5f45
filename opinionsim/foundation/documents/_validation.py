"""Checking documents against models, with errors by field."""

from __future__ import annotations

import json
import math
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import getitem
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, RootModel, ValidationError
from pydantic_core import CoreSchema

from opinionsim.errors import SpecError, meant
from opinionsim.foundation.documents._document import Document, show_value
from opinionsim.foundation.documents._parsing import KeyPath, key_text
from opinionsim.foundation.provenance import docstring, field_docstrings

#: Largest integer that every store keeps exactly.
MAX_INT = 2**63 - 1

_Model = TypeVar("_Model", bound=BaseModel)


class DocumentModel(BaseModel):
    """Base of all models that are read from documents: frozen, strict, unknown fields refused.

    Attribute docstrings become the descriptions of the JSON Schema. They are read when you make a schema;
    the option of pydantic would read them at every start.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    @classmethod
    def form_of(cls, value: Any) -> type[BaseModel]:
        """The model whose fields a value has: this class, unless a subclass chooses by the value."""
        return cls

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        form = handler(core)
        own = handler.resolve_ref_schema(form)
        if what := docstring(cls):
            own.setdefault("description", what)
        fields = own["properties"]
        docstrings = _docstrings(cls)
        for name, info in cls.model_fields.items():
            told = info.description or docstrings.get(name)
            if told:
                fields[name]["description"] = told
        return form


def _docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Docstrings of the fields of a model, its bases' included, as far as there are sources."""
    return {field: text for each in reversed(model.__mro__) for field, text in field_docstrings(each).items()}


def validate(model_class: type[_Model], source: Document | Mapping[str, Any], name: str = "") -> _Model:
    """Check a document against a model.

    Values are checked as JSON. A list can fill a tuple and a value can stand for an enum, but text is not accepted as a
    number, or a number as text.

    Parameters
    ----------
    model_class : type of BaseModel
        Model of the document, usually a :class:`DocumentModel`.
    source : Document or mapping
        The content.
    name : str
        Name of a bare mapping in errors.

    Returns
    -------
    BaseModel
        The instance.

    Raises
    ------
    SpecError
        One line per problem: ``FILE:LINE: field: what is wrong; valid: ...``.
    """
    document = Document.of(source, name)
    try:
        plain = json.dumps(document.value)
    except (TypeError, ValueError, RecursionError) as error:
        raise document.error((), f"contains something other than plain values, lists and mappings: {error}") from None
    for keys, number in _non_finite(document.value):
        raise document.error(keys, f"must be a finite number; got {number}")
    try:
        return model_class.model_validate_json(plain)
    except ValidationError as failure:
        value = json.loads(plain)
        problems = _problems(model_class, [dict(error) for error in failure.errors(include_url=False)], value)
    # Outside the handler: what is wrong may be a key, which the error of the library would hold.
    raise SpecError.joined(document.error(*each) for each in problems)


#: Errors about the sort of a value alone, with the sort that is expected, in words.
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
#: Codes of errors that are about no value.
_CODES = {"extra_forbidden": "spec-unknown-field", "missing": "spec-missing-field"}


def _is_mismatch(error: Mapping[str, Any]) -> bool:
    """Whether an error is about the sort of a value or a mere consequence of another error, not about content."""
    kind, given = error["type"], error["input"]
    if kind == "too_short":
        return len(given) >= int(error["ctx"]["min_length"])
    return kind in _SORTS or (kind == "literal_error" and isinstance(given, (dict, list)))


def _problems(
    model_class: type[BaseModel], errors: Sequence[dict[str, Any]], value: Any
) -> Iterator[tuple[KeyPath, str, str]]:
    """Problems to report: key path, text and code.

    A union reports an error for every branch it tried. Errors about the sort of a value are dropped when another branch
    accepted the sort and reports the content; when all branches report the sort, they become one problem.
    """
    located = [(_trace(error["loc"], value, keep_last=error["type"] == "missing"), error) for error in errors]
    places = {keys for keys, _ in located}
    content = {keys for keys, error in located if not _is_mismatch(error)}
    sorts: dict[KeyPath, list[dict[str, Any]]] = {}
    for keys, error in located:
        if not _is_mismatch(error):
            yield *_describe(model_class, keys, error, value), _CODES.get(error["type"], "spec-value")
        elif keys not in content and not any(keys == place[: len(keys)] != place for place in places):
            sorts.setdefault(keys, []).append(error)
    for keys, group in sorts.items():
        wanted = dict.fromkeys(_SORTS[error["type"]] for error in group if error["type"] in _SORTS)
        if len(wanted) > 1:
            yield keys, f"must be {' or '.join(wanted)}; got {show_value(group[0]['input'])}", "spec-value"
        else:
            yield *_describe(model_class, keys, group[0], value), "spec-value"


def _non_finite(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, float]]:
    """Infinities and NaN anywhere in a value."""
    if isinstance(value, float) and not math.isfinite(value):
        yield path, value
    elif isinstance(value, Mapping):
        for key, child in value.items():
            yield from _non_finite(child, (*path, key_text(key)))
    elif isinstance(value, (list, tuple)):
        for position, child in enumerate(value):
            yield from _non_finite(child, (*path, position))


def _describe(model_class: type[BaseModel], keys: KeyPath, error: Mapping[str, Any], value: Any) -> tuple[KeyPath, str]:
    """Key path and text of a validation error."""
    kind, given, context = error["type"], error["input"], error.get("ctx", {})
    got = f"; got {show_value(given)}"
    if kind == "extra_forbidden":
        valid = fields_at(model_class, keys[:-1], value)
        if keys[-1] in valid:
            # Two forms of the value each have some of the given fields.
            others = ", ".join(str(key) for key in reduce(getitem, keys[:-1], value) if key != keys[-1])
            return keys, f"cannot be given together with {others}" if others else "also needs another field"
        return keys, f"unknown field{meant(keys[-1], valid)}; valid: {', '.join(valid)}"
    if kind == "missing":
        return keys, "is required but missing"
    if kind in ("literal_error", "enum"):
        choices = re.findall(r"'([^']*)'", context["expected"]) or [context["expected"]]
        return keys, f"unknown value {show_value(given)}{meant(given, choices)}; valid: {', '.join(choices)}"
    if kind == "union_tag_invalid":
        choices = re.findall(r"'([^']*)'", context["expected_tags"])
        tag = str(context["tag"])
        return (*keys, context["discriminator"].strip("'")), (
            f"unknown value {tag!r}{meant(tag, choices)}; valid: {', '.join(choices)}"
        )
    if kind == "union_tag_not_found":
        tag = context["discriminator"].strip("'")
        choices = _tags_at(model_class, keys, tag, value)
        return (*keys, tag), f"is required but missing; valid: {', '.join(choices)}"
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        valid = fields_at(model_class, keys, value)
        return keys, f"must be a mapping of fields{got}" + (f"; valid: {', '.join(valid)}" if valid else "")
    if kind == "value_error":
        return keys, str(context["error"])
    if kind == "json_invalid":
        return (), "contains text that is not valid Unicode, or values nested too deeply"
    return keys, _plain(kind, context, str(error["msg"])) + got


def _plain(kind: str, context: Mapping[str, Any], fallback: str) -> str:
    """The requirement behind a simple validation error, in words."""
    if kind in _SORTS:
        return f"must be {_SORTS[kind]}"
    if kind.startswith("int_"):
        return "must be a whole number"
    # The bound of a field of floats is a float, even where it is whole.
    context = {
        name: int(bound) if isinstance(bound, float) and bound.is_integer() else bound
        for name, bound in context.items()
    }
    wording = {
        "float_parsing": "must be a number",
        "greater_than_equal": f"must be at least {context.get('ge')}",
        "greater_than": f"must be greater than {context.get('gt')}",
        "less_than_equal": f"must be at most {context.get('le')}",
        "less_than": f"must be less than {context.get('lt')}",
        "too_short": f"must have at least {_entries(context.get('min_length'))}",
        "too_long": f"must have at most {_entries(context.get('max_length'))}",
        "string_too_short": "must not be empty",
        "string_too_long": f"must have at most {context.get('max_length')} characters",
        "string_pattern_mismatch": f"must match the pattern {context.get('pattern')}",
    }
    return wording.get(kind, fallback.replace("Input should", "must"))


def _entries(count: object) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def _trace(location: Sequence[str | int], value: Any, *, keep_last: bool) -> KeyPath:
    """A validator's location as a key path of the document, without the names of union branches."""
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
    """The types in an annotation, with unions, ``Annotated`` and root models unpacked."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _members(get_args(annotation)[0])
    elif isinstance(annotation, type) and issubclass(annotation, RootModel):
        yield from _members(annotation.model_fields["root"].annotation)
    elif origin in (Union, types.UnionType):
        for member in get_args(annotation):
            yield from _members(member)
    else:
        yield annotation


def _models_at(model_class: type[BaseModel], keys: KeyPath, value: Any) -> list[type[BaseModel]]:
    """The models possible at a key path, narrowed at every level by the values of the document."""
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
    """Annotations under `key` of a type: of a model's field, or of the values of a list or mapping."""
    if isinstance(candidate, type) and issubclass(candidate, BaseModel):
        found = candidate.model_fields.get(str(key))
        return [found.annotation] if found else []
    return [argument for argument in get_args(candidate)[-2:] if argument is not Ellipsis][-1:]


def _selected(candidates: Sequence[Any], value: Any) -> list[Any]:
    """The candidates whose literal fields (a ``kind``) agree with the value."""
    chosen = []
    for candidate in candidates:
        if isinstance(candidate, type) and issubclass(candidate, DocumentModel):
            candidate = candidate.form_of(value)
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
    """Names of the fields possible at a key path.

    Parameters
    ----------
    model_class : type of BaseModel
        Model of the document.
    keys : KeyPath
        The key path.
    value : Any
        The document's content, which decides between alternatives at every level.

    Returns
    -------
    list of str
        Empty if no fixed fields are expected.
    """
    return list(dict.fromkeys(name for model in _models_at(model_class, keys, value) for name in model.model_fields))


def _tags_at(model_class: type[BaseModel], keys: KeyPath, tag: str, value: Any) -> list[str]:
    """Values that `tag` may take in the models at a key path."""
    models = _models_at(model_class, keys, value)
    return [str(choice) for model in models for choice in get_args(model.model_fields[tag].annotation)]
