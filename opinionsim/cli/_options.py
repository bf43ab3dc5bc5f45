"""Arguments and options of several commands."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from opinionsim.errors import SpecError
from opinionsim.foundation.provenance import docstring

if TYPE_CHECKING:
    from opinionsim.specification import Experiment


Changes = Annotated[list[str] | None, typer.Option("--set")]
Slots = Annotated[int | None, typer.Option("--max-concurrency", min=1, max=1_000_000)]
Lane = Literal["now", "flex", "batch"]
LaneName = Annotated[Lane | None, typer.Option("--lane")]
DesignNumber = Annotated[int | None, typer.Option(min=1)]
AsJson = Annotated[bool, typer.Option("--json")]


class SharedOptions:
    """Arguments and options of several commands: arguments by name, options as users type them.

    Parameters
    ----------
    spec : SPEC
        Path of a YAML specification or a manifest, or the name of an experiment in the package (see: opinionsim list
        experiments).
    --set : A.B=VALUE
        Replace a value of the specification, such as --set topic.framing=truth. You can repeat the option. Relative
        paths start from the current folder.
    --prompts : DIR
        Prompt pack to use: a name or a folder.
    --max-concurrency : N
        Maximum number of parallel model calls, over all runs. Default: the value in the specification.
    --lane
        How to buy replies: now at the list price, flex through the provider's slower and cheaper tier, or batch through
        its batch queue. Default: the lane in the specification.
    --store : STORE
        Store for the results: a path (.sqlite), or a sqlite:/// or postgresql+psycopg:// address. Default:
        results/NAME.sqlite.
    store : STORE
        Path of a store (.sqlite), or its sqlite:/// or postgresql+psycopg:// address.
    --experiment : NAME
        Name of the experiment in the store. Default: the one that ran last.
    --design : N
        Number of the design, if cells or instruments have changed (see: opinionsim status). Default: the one that ran
        last.
    --kind
        Kind of text to read opinions from, such as report. Default: the first kind that was measured, in the order of
        the column texts of runs.
    --wording : HASH
        When results combine several runs, use only runs with this wording of the prompts: a hash from the column
        wording of the runs, or its start. Default: the wording of the run that began last.
    --estimand
        What the means describe. Default: topics like these if there are three or more topics.
    --audit : ID
        Sample to use. Default: the one drawn last.
    --seed
        Seed of all random draws.
    --allow-key : NAME=HOST
        Allow a specification to send the key in an environment variable to a host. You can repeat the option, or set
        OPINIONSIM_KEYS=NAME=HOST,... in the environment.
    --csv : FILE
        Also save the unrounded numbers, one file per table.
    --force
        Replace an existing file even if this command did not make it. Stores are never replaced.
    --allow-parts
        Import metrics, tables, figures and models of your own; this runs their code.
    --json
        Print JSON.
    """


#: Before the parameters in a numpydoc docstring; and one of them: its name, what stands for its value, its text.
_PARAMETERS = "\n\nParameters\n----------\n"
_PARAMETER = re.compile(r"^([\w-]+)(?: : (.+))?\n((?: +.+\n?)+)", re.MULTILINE)


def explain(command: Any) -> None:
    """Give a command, or the commands of a group, the help in the docstring of its function.

    Its section of parameters gives the placeholder and the help of each option or argument. Missing entries come from
    :class:`SharedOptions`. A switch that is off by default has no form that turns it off.
    """
    for each in getattr(command, "commands", {}).values():
        explain(each)
    if any("--set" in each.opts for each in command.params):
        # Every command that takes a specification or names a model may meet a key of it.
        keys = typer.Typer(add_completion=False)
        keys.command()(_keys)
        command.params += typer.main.get_command(keys).params
    text = "" if command.callback is None else docstring(command.callback)
    command.help = (command.help or text).partition(_PARAMETERS)[0]
    shared, own = _told(docstring(SharedOptions)), _told(text)
    for each in command.params:
        said = each.metavar, each.help
        each.metavar, each.help = own.get(each.name) or (said if each.help else shared.get(each.opts[0], said))
        if each.default is False:
            each.secondary_opts = []
        if each.nargs == -1 and f"{each.metavar}".startswith("["):  # one at most, which stands before another
            each.get_usage_pieces = lambda _, form=each.metavar: [form]
            each.display_type_rich = lambda **_: "<str>"


def _allow_keys(pairs: list[str] | None) -> None:
    """Allow pairs of key and host in the environment of this process, which its workers inherit."""
    if pairs:
        from opinionsim.llm import allow_keys

        allow_keys(pairs)


def _keys(
    _: Annotated[list[str] | None, typer.Option("--allow-key", callback=_allow_keys, expose_value=False)] = None,
) -> None:
    """Hold the option ``--allow-key`` for the commands that get it."""


def _told(docstring: str) -> dict[str, tuple[str | None, str]]:
    """What stands for the values of the parameters that a docstring lists, and what they are for, by their names."""
    listed = _PARAMETER.findall(docstring.partition(_PARAMETERS)[2])
    return {name: (form or None, " ".join(text.split())) for name, form, text in listed}


def by_kind(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command for studies of agents one for all kinds of study.

    Parameters
    ----------
    command : callable
        Takes the path or name of a specification, ``changes`` from the command line and the options of the command.

    Returns
    -------
    callable
        Does what the kind of study of a specification does under this name. It raises a SpecError if studies of this
        kind have no such command, or an option that was given has no effect on them.
    """
    name = command.__name__

    @wraps(command)
    def chosen(spec: str, changes: list[str] | None = None, **options: Any) -> None:
        from opinionsim.registry import blamed, find
        from opinionsim.specification import study_of

        own_modules()
        if any(change.partition("=")[0].strip() == "study" for change in changes or ()):
            raise SpecError("--set study: a specification states its kind itself; change it in the file")
        kind = study_of(spec)
        part = find("study", kind)
        with blamed(part):
            does = part.target().commands()
        part.expect(isinstance(does, Mapping), "must have commands by name", does)
        if name not in does:
            valid = ", ".join(does) or "none"
            raise SpecError(f"{spec} is a study of kind {kind!r}, which has no {name}; valid: {valid}")
        given = {option: value for option, value in options.items() if value is not None and value is not False}
        for option in given.keys() - signature(does[name]).parameters.keys():
            spelled = option.removeprefix("as_").replace("_", "-")
            raise SpecError(f"--{spelled} has no effect on a study of kind {kind!r}; leave it out")
        with blamed(part):
            does[name](spec, changes=changes, **given)

    return chosen


def read_spec(spec: str, changes: list[str] | None, prompts: str | None, lane: str | None = None) -> Experiment:
    """Load an experiment with the changes from the command line."""
    import json

    from opinionsim.specification import load_experiment

    own_modules()
    overrides = list(changes or [])
    if prompts is not None:
        overrides.append(f"prompts={json.dumps(prompts)}")
    if lane is not None:
        overrides.append(f"execution.lane={lane}")
    return load_experiment(spec, overrides)


def own_modules() -> None:
    """Let Python find user-defined parts in the current folder."""
    from opinionsim.registry import search_folder

    search_folder(os.getcwd())


def allow(name: str, option: str, allow_parts: bool) -> None:
    """Import a user-defined part if that is allowed.

    Raises
    ------
    SpecError
        If the name is a user-defined part, and importing it is not allowed.
    """
    from opinionsim.registry import is_path

    if is_path(name):
        if not allow_parts:
            raise SpecError(f"{option} {name} is your own part; add --allow-parts to import it, which runs its code")
        own_modules()


def assignments(texts: list[str] | None, option: str, form: str = "NAME=VALUE") -> dict[str, Any]:
    """Names and values of an option that can be repeated. Names are distinct, and values are read as YAML.

    A name with dots in ``--set`` is a value inside another, as in ``options.base_url``.
    """
    from opinionsim.foundation.documents import parse_value

    found: dict[str, Any] = {}
    for text in texts or ():
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise SpecError(f"{option} {text!r}: must have the form {form}")
        *within, last = name.split(".") if option == "--set" else [name]
        place: Any = found
        for part in within:
            place = place.setdefault(part, {}) if isinstance(place, dict) else place
        if not isinstance(place, dict) or last in place:
            raise SpecError(f"{option} {name} is given twice")
        place[last] = parse_value(value, f"{option} {name}")
    return found
