"""The manifest: an experiment with all its content, from which you can run it again anywhere."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import opinionsim
from opinionsim.specification._cells import Experiment, design_id
from opinionsim.specification._fields import ExperimentSpec
from opinionsim.specification._overrides import axes_of, split_path
from opinionsim.specification._own_parts import own_parts_manifest, require_importable

_PACKAGES = (
    "langchain-core", "matplotlib", "mesa", "networkx", "numpy", "pandas", "pydantic", "scipy", "sqlalchemy",
)  # fmt: skip


def manifest(experiment: Experiment, *, models: Sequence[str] = ()) -> dict[str, Any]:
    """The manifest of an experiment; parameters and result are those of :func:`recorded_manifest`.

    Raises
    ------
    SpecError
        If another process cannot import one of the user's parts.
    """
    require_importable(own_parts_manifest(cell.spec for cell in experiment.cells))
    return recorded_manifest(experiment, models=models)


def recorded_manifest(experiment: Experiment, *, models: Sequence[str] = ()) -> dict[str, Any]:
    """The manifest of an experiment as a store keeps it, even if only this process has some of its parts.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    models : sequence of str
        Identities that chat models returned with their replies.

    Returns
    -------
    dict
        JSON values: ``opinionsim_manifest`` (version 1), ``spec`` as resolved, ``contents`` (prompt packs,
        personas, topics, messages and networks), ``environment`` (versions, git state, model identities, code of the
        user's parts, identities of the designs of variants), and of a frozen experiment ``frozen``: what was
        frozen, and what differs from it. A file with the manifest can be run like a specification and gives equal
        tables. It has the values of ``default_headers`` and ``default_query``; stores and exports have their digests
        (:func:`opinionsim.foundation.redaction.kept`).
    """
    everything = [experiment, *experiment.variants.values()]
    variants = {label: design_id(each) for label, each in experiment.variants.items()}
    found = {
        "opinionsim_manifest": 1,
        "spec": _unswept(experiment),
        "contents": experiment.resources.contents(),
        "environment": {
            "opinionsim": opinionsim.__version__,
            "python": ".".join(map(str, sys.version_info[:3])),
            "packages": versions(),
            "git": _git_state(),
            "models": sorted(models),
            "parts": own_parts_manifest(cell.spec for each in everything for cell in each.cells),
            **({"variants": variants} if variants else {}),
        },
    }
    if experiment.frozen is not None:
        found["frozen"] = experiment.frozen.against(found).model_dump(mode="json")
    return found


def _unswept(experiment: Experiment) -> dict[str, Any]:
    """The specification as resolved, swept fields as the document states them.

    Of several grids one may vary a field and another leave it: the latter must not get the first cell's value.
    """
    source = experiment.source.value
    sweep = source.get("sweep", {})
    found: dict[str, Any] = {**_resolved(experiment.spec), "sweep": sweep}
    paths = set(map(split_path, axes_of(sweep)))
    # What files decide is decided again by their contents: cells may have different files.
    paths |= {("population", "size"), ("population", "initial_opinions"), ("topic", "masked")}
    for *folders, last in sorted(paths, key=len):
        stated: Any = source
        node: Any = found
        for key in folders:
            stated, node = _entry(stated, key), _entry(node, key)
        if isinstance(node, list):
            node[int(last)] = stated[int(last)]
        elif isinstance(stated, Mapping) and last in stated:
            if isinstance(node, dict):
                node[last] = stated[last]
        elif isinstance(node, dict):
            node.pop(last, None)
    return found


def _entry(node: Any, key: str) -> Any:
    """The value under a key of a mapping or at a position of a list; None where there is none."""
    if isinstance(node, (list, tuple)):
        return node[int(key)] if key.isdigit() and int(key) < len(node) else None
    return node.get(key) if isinstance(node, Mapping) else None


def _resolved(spec: ExperimentSpec) -> dict[str, Any]:
    """A specification with its defaults, without those that would mean something else if they were stated."""
    found: dict[str, Any] = spec.model_dump(mode="json")
    if not spec.has_topic:
        del found["topic"]
    del found["population" if spec.cast else "cast"]
    for name in {"classifier", "texts"} - spec.measurement.model_fields_set:
        del found["measurement"][name]
    return found


@cache
def versions() -> dict[str, str]:
    """Versions of the packages that results depend on."""
    return {name: metadata.version(name) for name in _PACKAGES}


def _git_state() -> dict[str, Any] | None:
    """Commit of the current folder, and whether it has changes; None outside a repository."""
    try:
        commit = _git("rev-parse", "HEAD")
        return {"commit": commit, "dirty": bool(_git("status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=5, cwd=Path.cwd())  # noqa: S603
    return done.stdout.strip()
