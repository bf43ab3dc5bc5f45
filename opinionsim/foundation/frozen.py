"""The frozen design of an experiment before its confirmatory runs, and how an experiment differs from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field

from opinionsim.errors import SpecError
from opinionsim.foundation.documents import DocumentModel
from opinionsim.foundation.redaction import kept
from opinionsim.foundation.streams import canonical_json

#: Fields of a specification by the part of a study that they are of; all others are of its design.
_PARTS: Mapping[str, tuple[str, ...]] = {
    "analysis": ("analysis", "measurement", "robustness"),
    "prompts": ("prompts",),
    "models": ("model",),
}
#: Fields that are not frozen: they change no result, or are drawn from the hash.
_LOOSE = ("description", "execution", "seed")
#: Hexadecimal digits of the hash that make the seed, which every language reads as an exact number.
_SEED_DIGITS = 13


class Frozen(DocumentModel):
    """The frozen design of an experiment before its confirmatory runs, as an entry of its manifest.

    The seed of the runs is drawn from the hash. No run made before the freeze can therefore be one of them, and nobody
    chooses the seed.
    """

    at: str
    """Time of the freeze, as ISO 8601 in UTC; not part of the hash, so it does not affect the seed."""
    spec: dict[str, Any]
    """The resolved specification, without description, execution and seed."""
    contents: dict[str, str]
    """Hash of each file by its kind and name, as `topics/package`."""
    wordings: list[str]
    """Wordings of prompts, as the frame of runs names them."""
    runs: int = Field(ge=1)
    """Number of runs, without those of variants."""
    fixed: dict[str, str]
    """By name, version of the package, code of parts of the user's own, weights of models in this process, and hash of
    the text to which people consent."""
    parts: dict[str, str] = Field(default_factory=dict)
    """Hash of `design`, `analysis`, `prompts` and `models`."""
    hash: str = ""
    """Hash of everything that is frozen."""
    dated: str = ""
    """Hash of `hash` with the time of the freeze."""
    changed: dict[str, list[Any]] = Field(default_factory=dict)
    """By path, the frozen value and the value of the experiment that was run; empty in a new freeze."""

    @classmethod
    def of(cls, manifest: Mapping[str, Any], **further: Any) -> Frozen:
        """The freeze of a manifest; `further` are the fields that stand above those of the hash."""
        return cls(spec=_fixed(manifest["spec"]), contents=_hashes(manifest["contents"]), **further)._sealed()

    @property
    def seed(self) -> int:
        """Seed of the confirmatory runs, in [0, 2^52)."""
        return int(self.hash[:_SEED_DIGITS], 16)

    def _sealed(self) -> Frozen:
        """The same with the hashes that its content has."""
        fields = {part: {name: self.spec.get(name) for name in names} for part, names in _PARTS.items()}
        files = {name: found for name, found in self.contents.items() if not name.startswith("prompts/")}
        packs = {name: found for name, found in self.contents.items() if name not in files}
        others = {name: value for name, value in self.spec.items() if not any(name in own for own in _PARTS.values())}
        parts = {
            "design": _hash([others, files, self.runs]),
            "analysis": _hash(fields["analysis"]),
            "prompts": _hash([fields["prompts"], packs, self.wordings]),
            "models": _hash([fields["models"], self.fixed]),
        }
        found = _hash(parts)
        return self.model_copy(update={"parts": parts, "hash": found, "dated": _hash([found, self.at])})

    def against(self, manifest: Mapping[str, Any]) -> Frozen:
        """The freeze in the form for a manifest, with all differences. A file that is not used is not a difference."""
        now = _hashes(manifest["contents"])
        then = {name: self.contents.get(name) for name in now}
        changed = {f"contents.{name}": pair for name, pair in _differences(then, now)}
        changed |= _differences(self.spec, _fixed(manifest["spec"]))
        return self.model_copy(update={"changed": changed})

    def require_unedited(self, manifest: Mapping[str, Any], where: str = "") -> None:
        """Refuse an edited manifest: its entry has another hash, or it differs in more than it declares.

        Parameters
        ----------
        manifest : mapping
            The manifest that contains this entry.
        where : str
            File of the manifest, for the error.

        Raises
        ------
        SpecError
            If the manifest was edited; the error names the edited fields.
        """
        sealed = self._sealed().against(manifest)
        stated, found = ({**each.parts, "hash": each.hash, "at": each.dated, **each.changed} for each in (self, sealed))
        if edited := [path for path in stated | found if stated.get(path) != found.get(path)]:
            raise SpecError(
                f"{where or 'the manifest'} was frozen at {self.at} and edited since, in {', '.join(edited)}; use the "
                "file as it was written, and make necessary changes with --set, which the store records"
            )

    def require_seed(self, seed: int) -> None:
        """Refuse a seed that is not the one drawn from the hash.

        Raises
        ------
        SpecError
            If the seeds differ; the error names both.
        """
        if seed != self.seed:
            raise SpecError(
                f"seed: got {seed}, but frozen runs draw theirs from the frozen design, {self.seed}; for another seed, "
                "run the specification itself"
            )


def _fixed(spec: Mapping[str, Any]) -> Any:
    """The frozen fields of a resolved specification, as a file of a store has them."""
    return json.loads(canonical_json(kept({name: spec[name] for name in spec if name not in _LOOSE})))


def _hashes(contents: Mapping[str, Any]) -> dict[str, str]:
    """Hash of each file of the contents of a manifest, by its kind and name."""
    return {f"{kind}/{name}": _hash(each) for kind, named in contents.items() for name, each in named.items()}


def _hash(value: Any) -> str:
    """SHA-256 of a JSON value, as 64 hexadecimal characters."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def _differences(then: Any, now: Any, path: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Paths and values at which two JSON trees differ; of lists, the entries that only one of them has."""
    if isinstance(then, dict) and isinstance(now, dict):
        for key in then | now:
            yield from _differences(then.get(key), now.get(key), f"{path}.{key}".lstrip("."))
    elif then != now:
        if isinstance(then, list) and isinstance(now, list):
            alone = [each for each in then if each not in now], [each for each in now if each not in then]
            then, now = alone if any(alone) else (then, now)
        yield path, [then, now]
