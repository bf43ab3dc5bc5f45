"""The user's parts in an experiment, and their code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import Any

from opinionsim.errors import JournalMismatch, OpinionSimError, ScheduleError, SpecError
from opinionsim.llm import own_model
from opinionsim.registry import RAISED, Part, find, part_at, raised, told_of
from opinionsim.specification._fields import ExperimentSpec


def own_parts_of(spec: ExperimentSpec) -> dict[str, Part]:
    """The user's parts that can affect a run, by name."""
    network = spec.interaction.contacts
    parts = [find("interaction", spec.interaction.kind)]
    parts += [] if network is None else [find("network", network.kind)]
    parts += [find(spec.model.names, spec.model.label)] if spec.model.names else []
    if spec.model.prompted:
        parts += [find("memory", spec.cognition.memory.name), find("selector", spec.cognition.selector.name)]
        parts += [find("selector", each.selector.name) for each in spec.cast if each.selector is not None]
        parts += [find("chat_model", each.name) for each in spec.chat_models if own_model(each.name)]
        parts += [part for each in spec.chat_models for part in each.replies.parts]
        needed = (each for each in spec.instruments if each.variable in spec.interaction.needs)
        parts += [find("classifier", each.classifier.name) for each in needed]
    return {part.name: part for part in parts if part.outside}


def measuring_parts(spec: ExperimentSpec) -> dict[str, Part]:
    """The user's classifiers and metrics, by name."""
    parts = [find("classifier", each.classifier.name) for each in spec.instruments]
    parts += [find("metric", each.name) for each in spec.measurement.metrics]
    return {part.name: part for part in parts if part.outside}


@contextmanager
def naming_own_part(spec: ExperimentSpec) -> Iterator[None]:
    """Name the user's part that an exception in a run came from; other exceptions pass unchanged."""
    try:
        yield
    except ScheduleError as error:
        if spec.interaction.kind in own_parts_of(spec):
            raise ScheduleError(f"interaction {spec.interaction.kind}: {error}") from error
        raise
    except OpinionSimError:
        raise
    except RAISED as error:
        if (found := own_part_error(spec, error)) is None:
            raise
        raise found from error


def own_part_error(spec: ExperimentSpec, error: BaseException) -> SpecError | None:
    """The error of a run with user's parts, with the last line of their code in it; None if the run has none."""
    said, found, parts = raised(error, placed=False), part_at(error), own_parts_of(spec)
    if found is not None:
        return SpecError(f"{found[0].name} failed in {found[1]} with {said}")
    return SpecError(f"a run failed with {said}; your own parts in it: {', '.join(parts)}") if parts else None


def own_parts_code(spec: ExperimentSpec) -> dict[str, str]:
    """Code of the user's parts that can affect a run, by name."""
    return {name: part.code for name, part in own_parts_of(spec).items()}


def own_parts_manifest(specs: Iterable[ExperimentSpec]) -> dict[str, dict[str, Any]]:
    """Entries of a manifest on the user's parts: kind, version, code, and whether they can be imported."""
    return told_of(part for spec in specs for part in (own_parts_of(spec) | measuring_parts(spec)).values())


def require_same_code(parts: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse parts whose code differs from that in a manifest.

    Parameters
    ----------
    parts : mapping
        Result of :func:`own_parts_manifest`.

    Raises
    ------
    SpecError
        If a part differs or no other process can import it; names the part.
    """
    require_importable(parts)
    for name, told in parts.items():
        code = find(str(told["kind"]), name).code
        if code != told["code"]:
            raise SpecError(f"the code of {name} is {code} here, but was {told['code']} when the experiment started")


def require_importable(parts: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise a SpecError if no other process can import one of the parts, given as by :func:`own_parts_manifest`."""
    for name, told in parts.items():
        if not told["importable"]:
            raise SpecError(
                f"{name} exists only in the process that made it; move it into a module from which others can "
                "import it as package.module:Name"
            )


def advice_on_changed_code(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Advice about user's parts whose code has changed; empty if there are none."""
    changed = [name for name, code in now.items() if before.get(name, code) != code]
    if not changed:
        return ""
    which = "it has" if len(changed) == 1 else "they have"
    return (
        f"The code of {', '.join(changed)} has changed since; undo the change, restart these runs with --fresh, "
        f"or raise the version {which} in @opinionsim.part, which starts new runs"
    )


def with_advice(changed: str, error: OpinionSimError) -> OpinionSimError:
    """A mismatch with advice on changed code added; without advice, and for other errors, the same error."""
    if changed and isinstance(error, JournalMismatch):
        error = copy(error)
        error.advice = changed
    return error
