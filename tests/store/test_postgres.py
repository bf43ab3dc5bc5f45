from __future__ import annotations

import math
import pickle
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError

from opinionsim.errors import SpecError, StoreError
from opinionsim.llm import EntryKey
from opinionsim.messages import text_id
from opinionsim.store import FRAMES, Store, TieRow, load, open_store, shown
from opinionsim.watching import follow
from tests.support.postgres import Server, cut, database_of
from tests.support.rows import (
    TURNS,
    add,
    begun,
    call,
    design_row,
    instrument_row,
    lead,
    opinion_row,
    run_row,
    turn_row,
)
from tests.support.waiting import at_once, wait_until

# -- connections ---------------------------------------------------------------------------------------------


def test_connections_that_are_cut_lose_nothing(url: str, ask) -> None:
    with open_store(url) as store:
        record = begun(store)
        lead(record, turns=(), opinions=())
        for turn in range(300):
            record.append(call(turn, f"text {turn}", ("You are Ada.", f"post {turn}")))
            add(record, turn_row(turn))
            add(record, opinion_row(turn))
            if turn % 60 == 30:
                record.flush()
            if turn % 60 in (25, 45):
                cut(ask)
        store.finish("r1", record.epoch, "complete")
        cut(ask)
        assert [entry.text for entry in store.entries("r1")] == [f"text {turn}" for turn in range(300)]
        rows = [row for turn in range(300) for row in (turn_row(turn), opinion_row(turn))]
        assert [(event.seq, event.row) for event in store.follow("r1").poll()] == list(enumerate(rows, 1))
        assert store.prompt("r1", 299)[1].content == "post 299"
        assert store.states()["r1"].status == "complete"


def test_a_transaction_that_is_lost_at_its_end_is_carried_out_again(url: str, ask) -> None:
    with open_store(url) as store:
        record = begun(store)
        lead(record, turns=(), opinions=())
        record.flush()
        cuts = iter([True])

        def lose(_: object) -> None:
            if next(cuts, False):
                cut(ask)

        event.listen(store._database.writing, "commit", lose)
        record.append(call(0, "reply", ("You are Ada.", "post")))
        add(record, turn_row(0))
        record.flush()
        assert [entry.text for entry in store.entries("r1")] == ["reply"]
        assert [event.seq for event in store.follow("r1").poll()] == [1]
        assert [message.content for message in store.prompt("r1", 0)] == ["You are Ada.", "post"]
        assert next(cuts, None) is None


def _refuse(postgres: Server, url: str) -> None:
    """Let nobody connect any more, as while a server restarts."""
    with postgres.connect() as connection:
        connection.execute(f"ALTER DATABASE {database_of(url)} ALLOW_CONNECTIONS false")
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
        connection.execute(end, [database_of(url)])


def _admit(postgres: Server, url: str) -> None:
    with postgres.connect() as connection:
        connection.execute(f"ALTER DATABASE {database_of(url)} ALLOW_CONNECTIONS true")


def test_a_database_that_is_away_for_a_while_is_waited_for(postgres: Server, url: str) -> None:
    with open_store(url) as store, open_store(url, write=False) as reader, ThreadPoolExecutor(2) as pool:
        record = begun(store)
        _refuse(postgres, url)
        record.append(call(0))
        flushed = pool.submit(record.flush)
        wait_until(lambda: record.behind)
        with pytest.raises(StoreError, match="not currently accepting connections"):
            reader.states()
        # Whoever writes reads what was written.
        read = pool.submit(store.states)
        assert not flushed.done()
        assert not read.done()
        _admit(postgres, url)
        flushed.result()
        assert list(read.result()) == ["r1"]
        assert not record.behind
        assert len(store.entries("r1")) == 1


def test_a_database_that_stays_away_is_told_to_every_later_append(
    postgres: Server, url: str, ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opinionsim.store._database.PATIENCE_S", 0.1)
    store = open_store(url)
    record = begun(store)
    _refuse(postgres, url)
    record.append(call(0))
    with pytest.raises(StoreError, match=r"could not save 1 or more entries: .*not currently accepting connections"):
        record.flush()
    with pytest.raises(StoreError, match="could not save"):
        record.append(call(1))
    _admit(postgres, url)
    store.close()
    assert ask("SELECT owner FROM workers") == []


def test_whoever_follows_a_run_waits_for_a_database_that_is_away(
    postgres: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opinionsim.watching._new_rows._OFTEN_S", 0.01)
    monkeypatch.setattr("opinionsim.watching._new_rows._SELDOM_S", 0.05)
    with open_store(url) as store, ThreadPoolExecutor(1) as pool:
        record = begun(store)
        lead(record, turns=[turn_row(0)], opinions=())
        store.flush()
        told = follow(url, "r1")
        assert next(told).row == turn_row(0)
        rest = pool.submit(list, told)
        _refuse(postgres, url)
        add(record, turn_row(1))
        wait_until(lambda: record.behind)
        _admit(postgres, url)
        store.finish("r1", record.epoch, "complete")
        assert [(each.seq, each.row) for each in rest.result()] == [(2, turn_row(1))]


def test_whoever_follows_a_run_is_told_when_the_database_stays_away(
    postgres: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opinionsim.watching._new_rows._SELDOM_S", 0.01)
    monkeypatch.setattr("opinionsim.watching._new_rows._PATIENCE_S", 0.1)
    with open_store(url) as store:
        lead(begun(store), turns=[turn_row(0)], opinions=())
        store.flush()
        told = follow(url, "r1")
        assert next(told).seq == 1
        _refuse(postgres, url)
        with pytest.raises(StoreError, match=r"cannot read the store .*not currently accepting connections"):
            next(told)
        _admit(postgres, url)


def test_workers_that_share_texts_do_not_block_each_other(url: str) -> None:
    texts = [f"text {number}" for number in range(150)]
    with open_store(url) as one, open_store(url) as two:
        one.register([run_row("r0"), run_row("r1")])

        def append(number: int) -> None:
            store = (one, two)[number]
            record = begun(store, f"r{number}", f"worker {number}")
            own = texts[:: 1 - 2 * number]
            for turn, text in enumerate(own):
                # What each remembers begins alike.
                record.append(call(turn, text, ("You are Ada.", *texts[: turn % 7], text)))
                if turn % 25 == 0:
                    record.flush()
            record.flush()

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(append, range(2)))
        assert [entry.text for entry in one.entries("r1")] == texts[::-1]
        assert one.texts(map(text_id, texts)) == {text_id(text): text for text in texts}


def test_stores_opened_at_the_same_moment_are_made_once(url: str, ask) -> None:
    at_once(*[lambda: open_store(url).close()] * 4)
    assert ask("SELECT count(*) FROM schema_version") == [(1,)]


def test_an_instrument_two_workers_save_at_once_is_kept_once(url: str) -> None:
    with open_store(url) as one, open_store(url) as two:

        def save(store: Store, weights: str) -> str:
            try:
                store.save_instrument(instrument_row(options={"weights": weights}))
            except SpecError:
                return "refused"
            return weights

        saved = at_once(partial(save, one, "these"), partial(save, two, "those"))
        assert sorted(saved) in (["refused", "these"], ["refused", "those"])
        assert [row.options["weights"] for row in one.instruments()] == [name for name in saved if name != "refused"]


def test_designs_two_workers_add_at_once_have_numbers_of_their_own(url: str) -> None:
    rounds = 12
    with open_store(url) as one, open_store(url) as two:
        numbers = [
            at_once(
                *(partial(each.save_design, design_row(design_id=f"{i} {place}")) for i, each in enumerate((one, two)))
            )
            for place in range(rounds)
        ]
        assert sorted(chain(*numbers)) == list(range(1, 2 * rounds + 1))
        found = {row.design_id: row.design for row in one.designs()}
        assert found == {f"{number} {place}": numbers[place][number] for number in range(2) for place in range(rounds)}
        # One design that both save is one.
        assert len(set(at_once(*(partial(each.save_design, design_row(design_id="both")) for each in (one, two))))) == 1
        assert len(one.designs()) == 2 * rounds + 1


def test_a_reader_sees_one_state_and_cannot_change_it(url: str) -> None:
    with open_store(url) as store, open_store(url, write=False) as reader:
        store.register([run_row("r1")])
        with reader.reading() as connection:
            count = "SELECT count(*) FROM runs"
            assert connection.exec_driver_sql(count).scalar_one() == 1
            store.register([run_row("r2")])
            assert connection.exec_driver_sql(count).scalar_one() == 1
        with pytest.raises(StoreError, match="read-only transaction"), reader.reading() as connection:
            connection.exec_driver_sql("DELETE FROM runs")
        assert len(reader.states()) == 2


# -- what is stored ------------------------------------------------------------------------------------------


def test_frames_are_those_of_a_file(url: str, tmp_path: Path) -> None:
    odd = "lone \ud800, NUL \x00, é"
    frames = []
    for address in (url, str(tmp_path / "a.sqlite")):
        with open_store(address) as store:
            store.save_design(design_row())
            store.register([run_row(truth=None)])
            store.save_instrument(instrument_row())
            record = begun(store)
            # Databases order texts each in its own way: these names differ by it.
            for number, name in enumerate(("reply", "Reply", "reply.2", "re ply", "ré", "zz", odd)):
                record.append(call(0, f"{odd} {number}", call=name, reasoning=odd, cost=0.1, seed=2**31 - 1))
            record.append(call(1, status="refused", input_tokens=3, cached_tokens=1))
            lead(record, turns=[replace(turn, text=odd) for turn in TURNS], ties=[TieRow(1, 0, 1, 1, 0)])
            store.finish("r1", record.epoch, "incomplete", StoreError(odd))
            assert [entry.key for entry in store.entries("r1")] == sorted(entry.key for entry in record.entries)
        found = load(address)
        frames.append({name: getattr(found, name) for name in (*FRAMES, "metrics")})
    for name, frame in frames[0].items():
        timed = [column for column in frame if column.endswith("_at")]
        pd.testing.assert_frame_equal(frame.drop(columns=timed), frames[1][name].drop(columns=timed))


_ODD = st.text(st.characters() | st.characters(categories=["Cs", "Cc"]), max_size=50) | st.just("\x1bjson:[1]")


@settings(max_examples=6)
@given(texts=st.lists(_ODD, min_size=1, max_size=10), odd=_ODD)
def test_any_text_survives(postgres: Server, texts: list[str], odd: str) -> None:
    with open_store(postgres.database("odd texts")) as store:
        store.register([run_row()])
        store.forget(["r1"])
        record = begun(store)
        for turn, text in enumerate(texts):
            record.append(call(turn, text, (odd, text), call=f"reply{odd}", reason=odd, reasoning=odd))
        assert [(entry.text, entry.reason, entry.reasoning) for entry in store.entries("r1")] == [
            (text, odd, odd) for text in texts
        ]
        assert store.prompt("r1", 0, f"reply{odd}")[0].content == odd
        assert store.record("r1", record.epoch).lookup(EntryKey(0, f"reply{odd}", 0)) is not None


# -- addresses -----------------------------------------------------------------------------------------------


@pytest.fixture
def locked(postgres: Server, url: str, ask) -> str:
    """Address of the test's database with a user who needs a password, which is `s3cret`."""
    if not ask("SELECT 1 FROM pg_roles WHERE rolname = 'locked'"):
        ask("CREATE ROLE locked LOGIN SUPERUSER PASSWORD 's3cret'")
    return postgres.url(database_of(url), user="locked", password="s3cret")  # noqa: S106


def test_a_password_opens_the_store_and_is_never_shown(locked: str) -> None:
    with open_store(locked) as store:
        store.save_design(design_row())
        store.save_instrument(instrument_row())
        store.register([run_row()])
        again = store.url
        seen = [str(again), repr(again), f"{again}", repr(store), again + "", pickle.dumps(again)]
        with pytest.raises(StoreError, match="not registered") as missing:
            store.lease("absent", "one")
        seen.append(str(missing.value))
    results = load(again)
    seen += [repr(results), results.url, shown(locked), pickle.dumps(results.url)]
    assert not [text for text in seen if "s3cret" in str(text)]
    assert len(results.runs) == 1
    assert list(load(str(results.url)).runs["run_id"]) == ["r1"]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda url: url.replace("s3cret", "wr0ng-s3cret"), "password authentication failed"),
        (lambda url: url.replace(":s3cret@", "@"), "no password supplied"),
        (lambda url: url.replace("/test_", "/no_such_"), 'database "no_such_.*" does not exist'),
        (lambda url: url + "&passwrod=s3cret", "passwrod"),
        (lambda url: url + "/nowhere", "No such file or directory"),
        (lambda url: url.replace("@/", "@part@/"), "as %40"),
        (lambda url: url.replace("@/", "/"), "is not valid"),
        (lambda url: url + "\x00", "is not valid"),
        (lambda url: url.replace("psycopg:", "psycopg2:"), "'postgresql\\+psycopg2' are not supported"),
    ],
)
@pytest.mark.parametrize("write", [True, False])
def test_an_address_that_does_not_open_shows_no_password(
    locked: str, spoil: Callable[[str], str], message: str, write: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSFILE", "/nonexistent")
    with pytest.raises(StoreError, match=message) as caught:
        open_store(spoil(locked), write=write)
    assert len(str(caught.value).splitlines()) == 1
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))
    assert "s3cret" not in shown(spoil(locked))


def test_what_the_address_leaves_out_comes_from_the_environment(
    postgres: Server, locked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passwords = tmp_path / "pgpass"
    passwords.write_text("*:*:*:locked:s3cret\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    monkeypatch.setenv("PGHOST", str(postgres.folder))
    monkeypatch.setenv("PGUSER", "locked")
    monkeypatch.setenv("PGDATABASE", database_of(locked))
    named = f"postgresql:///{database_of(locked)}"
    for url in ("postgresql+psycopg://", "postgresql://", named, "postgresql://locked@"):
        with open_store(url) as store:
            store.register([run_row()])
    with open_store(locked, write=False) as reader:
        assert list(reader.states()) == ["r1"]


def test_a_password_in_the_query_is_hidden_too(locked: str) -> None:
    url = locked.replace(":s3cret@", "@") + "&password=s3cret"
    with open_store(url) as store:
        assert "s3cret" not in store.url
        open_store(store.url, write=False).close()
    assert "s3cret" not in shown(url)


def test_a_schema_of_its_own_holds_a_store(url: str, ask) -> None:
    ask("CREATE SCHEMA team")
    with open_store(f"{url}&options=-csearch_path%3Dteam") as store:
        store.register([run_row()])
        with open_store(store.url, write=False) as reader:
            assert list(reader.states()) == ["r1"]
    assert ask("SELECT run_id FROM team.runs") == [("r1",)]
    with pytest.raises(StoreError, match="is empty, not yet an opinionsim store"):
        open_store(url, write=False)


def test_one_who_may_only_read_reads(postgres: Server, url: str, ask) -> None:
    with open_store(url) as store:
        store.register([run_row()])
    if not ask("SELECT 1 FROM pg_roles WHERE rolname = 'guest'"):
        ask("CREATE ROLE guest LOGIN")
    ask("GRANT SELECT ON ALL TABLES IN SCHEMA public TO guest")
    guest = postgres.url(database_of(url), user="guest")
    with open_store(guest, write=False) as reader:
        assert list(reader.states()) == ["r1"]
    with open_store(guest) as store, pytest.raises(StoreError, match="permission denied"):
        store.register([run_row("r2")])


def test_a_database_that_is_no_store_is_refused_and_left_alone(url: str, ask) -> None:
    with pytest.raises(StoreError, match="is empty, not yet an opinionsim store"):
        open_store(url, write=False)
    ask("CREATE TABLE songs (title TEXT)")
    for write in (True, False):
        with pytest.raises(StoreError, match="the database of another program"):
            open_store(url, write=write)
    tables = ask("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    assert tables == [("songs",)]


def test_a_database_that_cannot_hold_every_text_is_refused(postgres: Server, url: str, ask) -> None:
    ask("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(StoreError, match="has encoding LATIN1, which cannot store every text"):
        open_store(postgres.url("latin"))


def test_a_missing_driver_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(
        StoreError, match=r'needs the PostgreSQL driver psycopg .*: pip install "opinionsim\[postgres\]"'
    ):
        open_store(url)


def test_numbers_and_texts_survive_exactly(url: str) -> None:
    numbers = [math.inf, -math.inf, 0.1 + 0.2, 5e-324, sys.float_info.max, -0.0, None]
    text = 'NUL \x00, half a pair \ud800, marker \x1bjson:, "quotes" \\ é 日'
    with open_store(url) as store:
        record = begun(store)
        for turn, number in enumerate(numbers):
            record.append(replace(call(turn, text), latency_s=number, seed=2**63 - 1 - turn))
        found = store.entries("r1")
        assert [repr(entry.latency_s) for entry in found] == [repr(number) for number in numbers]
        assert [entry.seed for entry in found] == [2**63 - 1 - turn for turn in range(len(numbers))]
        assert {entry.text for entry in found} == {text}


def test_an_error_of_the_statement_is_not_tried_again(url: str, ask) -> None:
    with open_store(url) as store:
        record = begun(store)
        ask("DROP TABLE journal")
        record.append(call(0))
        with pytest.raises(StoreError, match='could not save 1 or more entries: relation "journal" does not exist'):
            record.flush()
        with pytest.raises(DBAPIError), store._database.reading.connect() as connection:
            connection.exec_driver_sql("SELECT * FROM journal")
