"""Parts in specifications: mappings with a kind, and names with options."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar

import pydantic
from pydantic_core import CoreSchema, PydanticCustomError

from opinionsim.errors import SpecError
from opinionsim.foundation.documents import DocumentModel
from opinionsim.foundation.redaction import secret_in
from opinionsim.registry._parts import PATH, Part, built_in, find
from opinionsim.registry._tables import KINDS, names

#: JSON Schema of a mapping whose kind is a part of the user's own.
_OUTSIDE = {
    "type": "object",
    "properties": {"kind": {"type": "string", "pattern": f"^{PATH.pattern}$"}},
    "required": ["kind"],
}


class KindModel(DocumentModel):
    """Base of interactions and networks: a mapping with `kind` and the fields of that kind."""

    part_kind: ClassVar[str]

    kind: str = ""
    """Name of a built-in kind, or the import path of your own, package.module:Name."""

    @classmethod
    def named(cls, name: str) -> None:
        """Make `name` the kind of all objects of this class."""
        cls.model_fields["kind"].default = name
        cls.__pydantic_complete__ and cls.model_rebuild(force=True)

    @classmethod
    def form_of(cls, value: Any) -> type[pydantic.BaseModel]:
        """The class that the kind of a mapping names; this class if the kind is not known."""
        kind = value.get("kind") if isinstance(value, Mapping) else None
        try:
            found = find(cls.part_kind, kind) if isinstance(kind, str) and not cls.kind_name() else None
        except SpecError:
            return cls
        return cls if found is None else found.target

    @classmethod
    def kind_name(cls) -> str:
        """The kind of all objects of this class; empty for a base class."""
        return str(cls.model_fields["kind"].default)

    @classmethod
    def read(cls, value: Any) -> Any:
        """Turn a mapping of a specification into an object of the class that its `kind` names."""
        if isinstance(value, cls) or not isinstance(value, Mapping):
            return value
        kind = value.get("kind")
        if not isinstance(kind, str):
            valid = ", ".join(names(cls.part_kind))
            raise _at_kind(f"kind is required but missing; valid: {valid}, or the import path of your own", kind)
        try:
            found = find(cls.part_kind, kind)
        except SpecError as error:
            raise _at_kind(str(error), kind) from error
        if not (isinstance(found.target, type) and issubclass(found.target, cls)):
            home = KINDS[cls.part_kind].home
            raise _at_kind(f"{kind} must be a class that inherits from {home}.{cls.__name__}", kind)
        return found.target.model_validate_json(json.dumps({**value, "kind": found.name}))

    def stated(self, *without: str) -> dict[str, Any]:
        """The kind and the fields that differ from their defaults, as JSON values."""
        fields = self.model_dump(mode="json", exclude_defaults=True, exclude=set(without))
        return {**fields, "kind": self.kind}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: pydantic.GetJsonSchemaHandler) -> dict[str, Any]:
        if not cls.kind_name():
            kinds = [each.target for each in built_in(cls.part_kind).values()]
            forms = [each.__get_pydantic_json_schema__(each.__pydantic_core_schema__, handler) for each in kinds]
            return {"anyOf": [*forms, _OUTSIDE]}
        form = super().__get_pydantic_json_schema__(core, handler)
        schema = handler.resolve_ref_schema(form)
        schema["properties"]["kind"] = {"const": cls.kind_name(), "title": "Kind", "type": "string"}
        schema["required"] = ["kind", *(field for field in schema.get("required", ()) if field != "kind")]
        return form


def _at_kind(problem: str, kind: Any) -> pydantic.ValidationError:
    """An error about the field `kind` of a mapping."""
    error = PydanticCustomError("value_error", "{error}", {"error": problem})
    return pydantic.ValidationError.from_exception_data("kind", [{"type": error, "loc": ("kind",), "input": kind}])


def _no_secrets(options: dict[str, Any]) -> dict[str, Any]:
    if problem := secret_in(options):
        raise ValueError(problem)
    return options


Options = Annotated[dict[str, Any], pydantic.AfterValidator(_no_secrets)]


class NamedPart(DocumentModel):
    """A part by name, with its options; a plain name means a part without options."""

    name: str
    """Name of a built-in part, or the import path of your own, package.module:Name."""
    options: Options = pydantic.Field(default_factory=dict)
    """Options of the part."""

    def found(self, kind: str) -> Part:
        """The named part, after its options are checked; raises like :func:`find` and `Part.check_options`."""
        part = find(kind, self.name)
        part.check_options(self.options)
        return part

    @pydantic.model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: pydantic.GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, super().__get_pydantic_json_schema__(core, handler)]}

    @pydantic.model_serializer(mode="wrap")
    def _plain(self, handler: Callable[[Any], dict[str, Any]]) -> Any:
        return handler(self) if self.options else self.name
