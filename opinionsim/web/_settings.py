"""The form in which the owner changes a specification, sees a forecast, and saves it as a new file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import yaml

from opinionsim.errors import SpecError
from opinionsim.foundation.data import data_folder
from opinionsim.llm import load_prices
from opinionsim.schedules import Interaction
from opinionsim.specification import Experiment, apply_overrides, load_experiment, participant_names

#: Fields with numbers that the form shows of an interaction that declares none, with their labels.
_USUAL = {"steps": "Speaker turns at most", "words": "Maximum number of words that the prompt asks for"}
#: Texts of members of the cast.
_TEXTS = {"system": "System message", "persona": "Persona", "instructions": "Instructions", "task": "Task"}
#: Choice of a member without a model of its own.
USUAL = "that of all others"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,60}")


@dataclass(frozen=True)
class Input:
    """One field of the form.

    Attributes
    ----------
    path : str
        Dotted path in the specification.
    label : str
        Name of the field.
    value : str
        Its value as text.
    choices : tuple of str
        Valid values; empty for a number or a text.
    long : bool
        Whether it is a text of several lines.
    """

    path: str
    label: str
    value: str
    choices: tuple[str, ...] = ()
    long: bool = False


def settings(experiment: Experiment) -> list[Input]:
    """The fields of the form, with the values of the specification."""
    document, interaction = experiment.source.value, experiment.spec.interaction
    models = [model.name for cell in experiment.cells for model in cell.spec.chat_models]
    # Other names than those of the file are ones of which the price is known.
    models += ["scripted", *load_prices().prices]
    given = dict(interaction)
    found = [
        Input(f"interaction.{name}", label, "" if given[name] is None else str(given[name]))
        for name, label in (interaction.adjustable or _USUAL).items()
        if name in given
    ]
    places = [("", "All models that the specification does not name separately", document)]
    names = participant_names(experiment.spec)
    places += [(f"cast.{i}.", names[i], each) for i, each in enumerate(document.get("cast", []))]
    places += [(f"roles.{role}.", role.capitalize(), each or {}) for role, each in document.get("roles", {}).items()]
    for path, who, each in places:
        if not isinstance(each, Mapping) or "seat" in each or "text" in each:
            continue
        named = each.get("model") or ({} if path else {"name": "scripted"})
        if isinstance(named, Mapping) and ("name" in named or not named):
            choices = tuple(dict.fromkeys([str(named.get("name", USUAL)), *([USUAL] if path else []), *models]))
            own = ", ".join(named.get("options") or ())
            told = f" (with its own {own}, which another model goes without)" if own else ""
            found.append(Input(f"{path}model.name", f"{who}: model{told}", choices[0], choices))
        found += [
            Input(path + key, f"{who}: {label.lower()}", each.get(key) or "", (), True)
            for key, label in _TEXTS.items()
            if path and (key in each or _takes(path, key, interaction))
        ]
    return found


def _takes(path: str, key: str, interaction: Interaction) -> bool:
    """Whether a member, by its path, can have a text that its specification does not have yet."""
    # Instructions come with answers that are shown at once, and a role of a way of interacting has its own.
    if path.split(".")[1] in interaction.others:
        return key in ("system", "task")
    return key != "instructions" or not interaction.adaptive


def changed(experiment: Experiment, given: Mapping[str, str]) -> Experiment:
    """The experiment with the changes from the form.

    Raises
    ------
    SpecError
        If a value is not one of the choices, or the specification would not be valid.
    """
    overrides: dict[str, Any] = {}
    options = {model.name: model.options for cell in experiment.cells for model in cell.spec.chat_models}
    for each in settings(experiment):
        value = given.get(each.path, each.value).replace("\r\n", "\n").strip()
        if each.choices and value not in each.choices:
            raise SpecError(f"{each.label}: choose one of {', '.join(each.choices)}")
        if value == each.value.strip():
            continue
        if each.choices and value == USUAL:
            overrides[each.path.removesuffix(".name")] = None
        elif each.choices or each.long:
            overrides[each.path] = value or None
            if each.choices:
                # Options belong to a model: the address of a server would have another one be asked there.
                overrides[f"{each.path.removesuffix('name')}options"] = dict(options.get(value, {}))
        elif re.fullmatch(r"\d{1,6}", value):
            overrides[each.path] = int(value)
        elif value:
            raise SpecError(f"{each.label}: enter a whole number, or nothing for the default")
        else:
            overrides[each.path] = None
    source = experiment.source
    document: Any = source.value
    # What was changed on the command line stays changed.
    before = {".".join(map(str, keys)): reduce(lambda at, key: at[key], keys, document) for keys, _ in source.origins}
    return load_experiment(source.path or source.value, {**before, **overrides})


def saved(experiment: Experiment, name: str) -> Path:
    """Write the specification into a new file, next to its own, or in the current folder if the package contains it.

    Parameters
    ----------
    experiment : Experiment
        The experiment, with its changes.
    name : str
        Name of the file without its ending, which becomes the name of the experiment.

    Raises
    ------
    SpecError
        If the name is not plain, or the file exists.
    """
    if not _NAME.fullmatch(name):
        raise SpecError("The name must consist of letters, digits, - and _.")
    own = experiment.source.path
    folder = Path() if own is None or own.resolve().is_relative_to(data_folder("experiments").resolve()) else own.parent
    path = folder / f"{name}.yaml"
    document = apply_overrides(experiment.source, {"name": name})
    text = yaml.safe_dump(document.value, sort_keys=False, allow_unicode=True, width=100)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise SpecError(f"The file {path} already exists; give another name.") from None
    return path.absolute()
