"""Reading a journal: entries, and the prompts that they answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, get_args

from sqlalchemy import Connection, Select, literal, select

from opinionsim.conduct import Sign
from opinionsim.errors import DamagedError
from opinionsim.llm import Entry, EntryKey, Source
from opinionsim.messages import ChatMessage, ReplyStatus, prompt_identity, text_id
from opinionsim.store import _counts, _schema

#: Messages of prompts that a query reads, about.
_AT_ONCE = 500
#: Fields of an entry that are read back from the columns of its row.
_COPIED = sorted({field.name for field in fields(Entry)} - {"key", "prompt", "text", "reasoning", "signs"})
#: Valid values of some of them.
_VALID: Mapping[str, frozenset[str]] = {
    "source": frozenset(get_args(Source)),
    "acceptance": frozenset(("accepted", "rejected", "unparsed")),
    "status": frozenset(get_args(ReplyStatus)),
}


def checked_text(identity: str, text: str | None) -> str:
    """A text that was read by its content identity, checked against it.

    Raises
    ------
    StoreError
        If the text is missing or different.
    """
    if text is None:
        raise DamagedError(f"text {identity} is missing")
    if not isinstance(text, str) or text_id.__wrapped__(text) != identity:
        raise DamagedError(f"text {identity} has changed since it was written")
    return text


def with_texts() -> Select[Any]:
    """All columns of the journal, then ``text`` and ``thought``: what :func:`texts_of` reads."""
    entry, thoughts = _schema.journal, _schema.texts.alias()
    statement = _schema.with_text(entry).add_columns(thoughts.c.text.label("thought"))
    return statement.outerjoin(thoughts, thoughts.c.text_id == entry.c.reasoning_id)


def texts_of(row: Any) -> tuple[str, str]:
    """Text and reasoning of an entry; reasoning is empty if there is none.

    Raises
    ------
    StoreError
        If one is damaged or missing.
    """
    text = checked_text(row.text_id, row.text)
    return text, "" if row.reasoning_id is None else checked_text(row.reasoning_id, row.thought)


def stored_entries(connection: Connection, run_id: str, turn: int | None = None) -> list[Entry]:
    """The entries of a run's journal, or of one turn, sorted by key, without prompts, for replays.

    Raises
    ------
    StoreError
        If one is damaged or missing, or lacks its text.
    """
    entry = _schema.journal
    _counts.require_whole(connection, [run_id], [entry])
    statement = with_texts().where(entry.c.run_id == run_id)
    rows = _schema.sealed(connection, entry, statement if turn is None else statement.where(entry.c.turn == turn))
    # Sorted here, because databases order texts differently.
    return sorted((_entry(row) for row in rows), key=lambda each: each.key)


def _entry(row: Any) -> Entry:
    for name, valid in _VALID.items():
        if getattr(row, name) not in valid:
            raise DamagedError(
                f"{name} {getattr(row, name)!r} of run {row.run_id}, turn "
                f"{row.turn}, call {row.call!r}; valid: {', '.join(sorted(valid))}"
            )
    text, reasoning = texts_of(row)
    copied = {name: getattr(row, name) for name in _COPIED}
    signs = tuple(Sign(*each) for each in _schema.read_json(_schema.journal, row, "signs"))
    return Entry(EntryKey(row.turn, row.call, row.attempt), text=text, reasoning=reasoning, signs=signs, **copied)


def prompt_links(connection: Connection, prompt_ids: Iterable[str]) -> Iterator[Any]:
    """The last message of prompts and of all prompts at their beginning, each once, with its text.

    Raises
    ------
    DamagedError
        Naming the first that is damaged or missing.
    """
    known: set[str] = {""}
    wanted = set(prompt_ids) - known
    while wanted:
        before: set[str] = set()
        for some in _schema.chunks(wanted):
            for row in connection.execute(_chains(some)):
                if row.prompt_id not in known:
                    if row.prompt_id != prompt_identity(row.before, row.role, row.text_id):
                        raise DamagedError(f"prompt {row.prompt_id} has changed since it was written")
                    known.add(row.prompt_id)
                    before.add(row.before)
                    yield row
        if lost := wanted - known:
            raise DamagedError(f"prompt {min(lost)} is missing")
        wanted = before - known


def _chains(prompt_ids: Sequence[str]) -> Select[Any]:
    """The messages of prompts, the last first: all of a few prompts, or the last ones of many.

    Many prompts begin alike, so that all messages of each would be many times those that there are.
    """
    prompt, text = _schema.prompts, _schema.texts
    columns = (prompt.c.prompt_id, prompt.c.before, prompt.c.role, prompt.c.text_id)
    last = select(*columns, literal(1).label("place")).where(prompt.c.prompt_id.in_(prompt_ids)).cte(recursive=True)
    earlier = select(*columns, last.c.place + 1).join(last, prompt.c.prompt_id == last.c.before)
    chain = last.union_all(earlier.where(last.c.place < _AT_ONCE // len(prompt_ids)))
    return select(chain, text.c.text).outerjoin(text, text.c.text_id == chain.c.text_id)


def stored_prompts(connection: Connection, prompt_ids: Iterable[str]) -> dict[str, list[ChatMessage]]:
    """The literal messages of prompts by identity, each oldest first.

    Raises
    ------
    StoreError
        If one is damaged or missing.
    """
    wanted = list(dict.fromkeys(prompt_ids))
    links = {row.prompt_id: row for row in prompt_links(connection, wanted)}
    return {prompt_id: _chained(links, prompt_id) for prompt_id in wanted}


def _chained(links: Mapping[str, Any], prompt_id: str) -> list[ChatMessage]:
    messages: list[ChatMessage] = []
    while prompt_id:
        row = links[prompt_id]
        messages.append(ChatMessage(row.role, checked_text(row.text_id, row.text)))
        prompt_id = row.before
    return messages[::-1]
