"""The commands show, view and replay, which read runs in a store, and the group store for whole stores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opinionsim.cli._console import Force, note, say, say_json
from opinionsim.cli._options import AsJson, DesignNumber, own_modules
from opinionsim.cli._stores import note_standing, read_results
from opinionsim.errors import SpecError
from opinionsim.watching import row_of

if TYPE_CHECKING:
    from opinionsim.llm import Entry
    from opinionsim.store import AgentRow, Store


def show(
    store: str,
    experiment: str | None = None,
    design: DesignNumber = None,
    run: str | None = None,
    agent: str | None = None,
    turn: int | None = None,
    shifts: Annotated[int | None, typer.Option(min=1)] = None,
    prompt: bool = False,
    as_json: AsJson = False,
) -> None:
    """Print the transcript of a run, with what each agent read and how each text was coded.

    Parameters
    ----------
    run : NAME|ID
        Condition and replicate of the run, such as weak/3, or the start of its id (see: status --runs). Default: the
        first.
    agent : N|NAME
        Only this agent: a number from 0, or the name or its beginning.
    turn : N
        Only this turn: a number from 0.
    shifts : N
        Only the N largest changes of opinion, with what the agents had read.
    prompt
        Also print the literal prompt of each call.
    """
    from opinionsim.store import find_design, open_store
    from opinionsim.watching import transcript, transcript_data

    if prompt and (as_json or shifts is not None):
        raise SpecError("--prompt goes with neither --json nor --shifts; --turn N --prompt shows the prompts of a turn")
    results = read_results(store, experiment, design)
    with open_store(results.url, write=False) as opened:
        rows = find_design(opened, results.name, results.design)[0].rows
        row = row_of(results.name, rows, 0 if run is None else run)
        note_standing(opened, rows[row])
        number = None if agent is None else _agent_named(agent, opened.agents(rows[row].run_id))
        if as_json:
            say_json(transcript_data(results, row, number, turn, shifts))
        else:
            say(transcript(results, row, number, turn, shifts))
        if prompt:
            _say_prompts(opened, rows[row].run_id, number, turn)


def _agent_named(given: str, agents: Sequence[AgentRow]) -> int:
    """The number of the agent that a number or a name stands for."""
    found = [each.agent for each in agents if given in (str(each.agent), each.name)]
    found = found or [each.agent for each in agents if each.name.casefold().startswith(given.strip().casefold())]
    if len(found) != 1:
        names = ", ".join(f"{each.agent} {each.name}" for each in agents) or "none, because nothing is stored yet"
        many = "several agents have" if found else "no agent has"
        raise SpecError(f"--agent {given}: {many} such a number or name; the run's agents are {names}")
    return found[0]


def _say_prompts(opened: Store, run_id: str, agent: int | None, turn: int | None) -> None:
    """Print the prompt of every call of the chosen turns, with the reply, its reasoning, tokens and money."""
    calls = [
        call for call in opened.calls(run_id) if agent in (None, call.agent) and turn in (None, call.key.turn)
    ]  # fmt: skip
    if not calls:
        say("\nNo model call was made for this.")
    for call in calls:
        attempt = f", attempt {call.key.attempt}" if call.key.attempt else ""
        say(f"\n===== prompt of turn {call.key.turn}, {call.key.call}{attempt} ({call.acceptance}) =====")
        say(_particulars(call))
        for message in opened.prompt(run_id, *call.key):
            say(f"\n[{message.role}]\n{message.content}")
        if call.reasoning:
            say(f"\n[reasoning]\n{call.reasoning}")
        say(f"\n[reply]\n{call.text}")
        if call.taken:
            say(f"\n[what readers saw, without {', '.join(call.taken.split())}]\n{call.left}")


def _particulars(call: Entry) -> str:
    """Condition, model, tokens, money and time of a call in one line, as far as they are known."""
    told = [
        ("status", "{}"),
        ("reason", "rejected: {}"),
        ("shows", "shows {}"),
        ("finish_reason", "finish reason {}"),
        ("model", "model {}"),
        ("input_tokens", "{:,} tokens in"),
        ("cached_tokens", "{:,} of them cached"),
        ("output_tokens", "{:,} tokens out"),
        ("reasoning_tokens", "{:,} of them reasoning"),
        ("cost", "money {:.6f}"),
        ("latency_s", "{:.1f} s"),
    ]
    known = [(form, getattr(call, name)) for name, form in told]
    return " · ".join(form.format(value) for form, value in known if value not in (None, ""))


def replay(store: str, experiment: str | None = None, design: DesignNumber = None, as_json: AsJson = False) -> None:
    """Rebuild every complete run from its stored calls, without a model, and compare the results."""
    from opinionsim.running import replay as replayed

    own_modules()
    found = replayed(read_results(store, experiment, design))
    differing = [each for each in found if each.difference]
    if as_json:
        say_json([{"run_id": each.run_id, "turns": each.turns, "difference": each.difference} for each in found])
    else:
        for each in differing:
            say(f"{each.run_id}: {each.difference}")
        turns = sum(each.turns for each in found)
        say(f"{len(found) - len(differing)} of {len(found)} complete runs are equal after replay ({turns:,} turns)")
    if differing:
        raise typer.Exit(1)
    if not found:
        note("no run is complete, so there is nothing to replay")


def view(
    store: str,
    experiment: str | None = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535)] = None,
    no_browser: bool = False,
    design: DesignNumber = None,
    run: str | None = None,
    export: Path | None = None,
    force: Force = False,
) -> None:
    """Show the experiments of a store in a browser, during the runs or later.

    Parameters
    ----------
    port : N
        Port. 0 takes a free one. Default: 8710, if it is free.
    no_browser
        Print the link without opening a browser.
    run : NAME|ID
        Run that --export writes (see: status --runs).
    export : FILE
        Write one run to an HTML file that opens without a server.
    """
    if (run is None) != (export is None):
        raise SpecError("--export needs --run, and --run needs --export; give a run and the file to write")
    if export is not None:
        return _exported(store, experiment, design, str(run), export, force=force)
    from opinionsim.studio import view as shown

    shown(store, experiment, port=port, browser=not no_browser)


def studio(
    folder: Annotated[str, typer.Argument()] = ".",
    port: Annotated[int | None, typer.Option(min=0, max=65535)] = None,
    no_browser: bool = False,
) -> None:
    """Design, price, start, watch and read the studies of a folder in a browser.

    Parameters
    ----------
    folder : DIR
        Folder of your studies. Default: the current one.
    port : N
        Port. 0 takes a free one. Default: 8710, if it is free.
    no_browser
        Print the link without opening a browser.
    """
    from opinionsim.studio import studio as opened

    opened(folder, port=port, browser=not no_browser)


def _exported(store: str, experiment: str | None, design: int | None, run: str, path: Path, *, force: bool) -> None:
    """Write one run as a file."""
    from opinionsim.store import find_design, open_store
    from opinionsim.web import export

    with open_store(store, write=False) as opened:
        chosen, _ = find_design(opened, experiment, design)
        row = row_of(chosen.name, chosen.rows, run)
        found = chosen.rows[row]
        note(f"writing run {found.name}; a long run takes a minute")
        for left_out in export(opened, found.run_id, path, row, force=force):
            note(left_out)
    say(f"{path}: {path.stat().st_size / 1e6:,.1f} MB; open it in a browser, no network needed")


# -- stores as a whole ---------------------------------------------------------------------------------------

store = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")


@store.command()
def copy(
    source: str,
    target: str,
) -> None:
    """Copy a store to a new file, at any time: even while a run writes to it, or after a run was killed.

    Parameters
    ----------
    source : STORE
        Path to a store (.sqlite), or its sqlite:/// or postgresql+psycopg:// address.
    target : COPY
        Path for the copy; it must not exist yet.
    """
    from opinionsim.store import copy_store, shown

    copy_store(source, target)
    say(shown(target))


@store.command()
def check(store: str) -> None:
    """Check everything in a store. Print what is damaged or missing, with exit code 1, or that the store is sound."""
    from opinionsim.store import open_store

    with open_store(store, write=False) as opened:
        found, has_log = list(opened.damage()), opened.has_log
    for line in found:
        say(line)
    if found:
        say("The store is damaged; restore it from a backup, or start the runs above anew with `run --fresh`.")
        raise typer.Exit(1)
    say("The store is sound.")
    if has_log:
        say("Its last rows are in a log file; the check cannot tell whether the log lost its last transactions.")
