"""Reading a journal back: entries, and the prompts they answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, get_args

from sqlalchemy import Connection, Select, literal, select

from opinionsim.errors import DamagedError
from opinionsim.llm import Entry, EntryKey, Source
from opinionsim.messages import ChatMessage, Condition, prompt_identity
from opinionsim.store import _schema

#: Largest number of messages in a prompt.
_LONGEST = 1_000_000
#: Fields of an entry that are read back from the columns of its row.
_COPIED = tuple(field.name for field in fields(Entry) if field.name not in ("key", "prompt", "text", "reasoning"))
#: Valid values of some of them.
_VALID: Mapping[str, frozenset[str]] = {
    "source": frozenset(get_args(Source)),
    "verdict": frozenset(("accepted", "rejected", "unparsed")),
    "condition": frozenset(get_args(Condition)),
    "flag": frozenset(("", "note", "suspected")),
}


def with_texts() -> Select[Any]:
    """All columns of the journal, then ``text`` and ``thought``: what :func:`texts_of` reads."""
    entry, thoughts = _schema.journal, _schema.texts.alias()
    statement = _schema.with_text(entry).add_columns(thoughts.c.text.label("thought"))
    return statement.outerjoin(thoughts, thoughts.c.text_id == entry.c.reasoning_id)


def texts_of(row: Any) -> tuple[str, str]:
    """Text and reasoning of an entry; the latter empty where there is none.

    Raises
    ------
    StoreError
        If one is damaged or missing.
    """
    text = _schema.checked_text(row.text_id, row.text)
    return text, "" if row.reasoning_id is None else _schema.checked_text(row.reasoning_id, row.thought)


def stored_entries(connection: Connection, run_id: str, *, calls: bool = False, whole: bool = False) -> list[Entry]:
    """Entries of a run sorted by key, without prompts.

    Parameters
    ----------
    connection : Connection
        To the database.
    run_id : str
        The run.
    calls : bool
        Whether only the replies of models are wanted.
    whole : bool
        Whether to check that none is missing before the last.

    Raises
    ------
    StoreError
        If one is damaged or missing, or lacks its text.
    """
    entry = _schema.journal
    statement = with_texts().where(entry.c.run_id == run_id)
    if calls:
        statement = statement.where(entry.c.source == "model")
    rows = list(_schema.sealed(connection, entry, statement))
    last = max((row.entry for row in rows), default=0)
    if whole and len(rows) != last:
        raise DamagedError(f"{last - len(rows)} entries of the journal of run {run_id} are missing")
    # Sorted here, because databases order texts differently.
    return sorted((_entry(row) for row in rows), key=lambda each: each.key)


def _entry(row: Any) -> Entry:
    for name, valid in _VALID.items():
        if getattr(row, name) not in valid:
            raise DamagedError(
                f"{name} {getattr(row, name)!r} of run {row.run_id}, turn "
                f"{row.turn}, part {row.part!r}; valid: {', '.join(sorted(valid))}"
            )
    text, reasoning = texts_of(row)
    copied = {name: getattr(row, name) for name in _COPIED}
    return Entry(EntryKey(row.turn, row.part, row.attempt), text=text, reasoning=reasoning, **copied)


def stored_prompt(connection: Connection, prompt_id: str) -> list[ChatMessage]:
    """The literal messages of a prompt, oldest first.

    Raises
    ------
    StoreError
        If it is damaged or missing.
    """
    prompt, text = _schema.prompts, _schema.texts
    columns = (prompt.c.prompt_id, prompt.c.before, prompt.c.role, prompt.c.text_id)
    last = select(*columns, literal(0).label("place")).where(prompt.c.prompt_id == prompt_id).cte(recursive=True)
    before = select(*columns, last.c.place + 1).join(last, prompt.c.prompt_id == last.c.before)
    # Damaged links may form a circle.
    before = before.where(last.c.place < _LONGEST)
    chain = last.union_all(before)
    statement = (
        select(chain, text.c.text).outerjoin(text, text.c.text_id == chain.c.text_id).order_by(chain.c.place.desc())
    )
    messages: list[ChatMessage] = []
    identity = ""
    for row in connection.execute(statement):
        if row.before != identity or row.prompt_id != prompt_identity(identity, row.role, row.text_id):
            raise DamagedError(f"prompt {prompt_id} is not as it was written")
        identity = row.prompt_id
        messages.append(ChatMessage(row.role, _schema.checked_text(row.text_id, row.text)))
    if identity != prompt_id:
        raise DamagedError(f"prompt {prompt_id} is missing")
    return messages


def stored_prompts(connection: Connection, prompt_ids: Iterable[str]) -> dict[str, list[ChatMessage]]:
    """The literal messages of several prompts by identity, each oldest first.

    Messages are read in as many queries as the longest prompt has; for one long prompt :func:`stored_prompt` is faster.

    Raises
    ------
    StoreError
        If one is damaged or missing.
    """
    prompt, text = _schema.prompts, _schema.texts
    statement = select(prompt, text.c.text).outerjoin(text, text.c.text_id == prompt.c.text_id)
    wanted = list(dict.fromkeys(prompt_ids))
    links: dict[str, Any] = {}
    missing = set(wanted)
    while missing:
        found: dict[str, Any] = {}
        for some in _schema.chunks(missing):
            for row in connection.execute(statement.where(prompt.c.prompt_id.in_(some))):
                if row.prompt_id != prompt_identity(row.before, row.role, row.text_id):
                    raise DamagedError(f"prompt {row.prompt_id} is not as it was written")
                found[row.prompt_id] = row
        if lost := missing - found.keys():
            raise DamagedError(f"prompt {min(lost)} is missing")
        links |= found
        missing = {row.before for row in found.values() if row.before} - links.keys()
    return {prompt_id: _chained(links, prompt_id) for prompt_id in wanted}


def _chained(links: Mapping[str, Any], prompt_id: str) -> list[ChatMessage]:
    messages: list[ChatMessage] = []
    while prompt_id:
        row = links[prompt_id]
        messages.append(ChatMessage(row.role, _schema.checked_text(row.text_id, row.text)))
        prompt_id = row.before
    return messages[::-1]
