"""Sweeps through a provider that misbehaves, driven by the real client of OpenAI's dialect.

The stub provider answers as the scripted model does and logs every request by its content, so that what a sweep
stores, pays and survives is checked against the other side of the wire.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from opinionsim.cli import app
from opinionsim.foundation import background
from opinionsim.running import Invocation, under_way
from opinionsim.specification import load_experiment
from opinionsim.store import open_store
from tests.conftest import (
    _interruptible as _interruptible,
    _loopback_only as _loopback_only,
    _own_folder as _own_folder,
)
from tests.support.processes import Command
from tests.support.provider import StubProvider
from tests.support.provider_faults import Faults, StubRequest, evenly
from tests.support.provider_replies import scripted_reply
from tests.support.provider_runs import (
    SPEC,
    THOUGHTS,
    WithinTheProcess,
    all_at_once,
    answers,
    assert_nothing_imputed,
    assert_paid_once,
    seeds_of,
)
from tests.support.running import assert_same, carry_out, changed, ended, loaded

#: Silence costs a time-out each. Few replies are due at a time, so that a loaded machine keeps it for the others.
IMPATIENT = {**SPEC["execution"], "timeout_s": 1.0, "max_concurrency": 8}
#: Faults that cost no time-out.
QUICK = tuple(kind for kind in Faults.TRANSPORT if kind not in ("hang", "stall"))


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubProvider]:
    """A provider at the address that the environment names, so that no port is part of any identity."""
    with StubProvider(scripted_reply(temperature=0.7)) as running:
        monkeypatch.setenv("OPENAI_API_KEY", "of-no-use-here")
        monkeypatch.setenv("OPINIONSIM_KEYS", "OPENAI_API_KEY=127.0.0.1")
        monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
        yield running


def settled(stub: StubProvider, faults: Faults | None = None) -> list[Any]:
    """The log so far, after which it begins anew under other faults; connections given up are over by then."""
    log, stub.log = stub.log, []
    stub.faults = faults or Faults()
    return log


# --- all faults at once ------------------------------------------------------------------------------------------


def test_a_sweep_under_all_faults_at_once(stub: StubProvider) -> None:
    spec = changed(SPEC, replicates=20, interaction__steps=8, execution=IMPATIENT)
    stub.faults = all_at_once(0.3, content_=0.2, lasting=0.02)
    summary, results = carry_out(spec, "s.sqlite")
    log = settled(stub)
    # Each kind was met, or the test shows less than it says.
    assert {exchange.fault for exchange in log} >= {*Faults.TRANSPORT, *Faults.CONTENT, *Faults.HARMLESS}
    assert {exchange.fault for exchange in log} & {*Faults.THIS_REQUEST}

    # Every run is complete, or marked with its reason.
    assert summary.total == 20
    assert 0 < len(summary.errors) == 20 - summary.complete < 20
    runs = results.runs.set_index("run_id")
    assert set(runs["status"]) == {"complete", "incomplete"}
    assert dict(runs.loc[runs["status"] == "incomplete", "error"]) == summary.errors
    assert all(f"run {run_id}, step " in error for run_id, error in summary.errors.items())
    assert not runs.loc[runs["status"] == "complete", "error"].any()

    # What is stored is what was sent, and what was sent was paid once.
    assert_nothing_imputed(stub, log, "s.sqlite", results)
    assert_paid_once(log, results.calls)
    assert summary.made == len(results.calls)
    assert {*results.calls["status"]} == {"answered", "refused", "empty", "truncated"}

    # What failed for good goes on when its reason is gone, and asks for nothing it has.
    stub.faults = all_at_once(0.3, content_=0.2)
    mended, mended_results = carry_out(spec, "s.sqlite")
    again = settled(stub)
    assert (mended.complete, mended.errors) == (20, {})
    assert not seeds_of(again) & {int(seed) for seed in results.calls["seed"]}
    assert_paid_once([*log, *again], mended_results.calls)

    # And all of it equals the sweep that met the faults of content alone.
    stub.faults = all_at_once(0.0, content_=0.2)
    undisturbed, expected = carry_out({**spec, "execution": SPEC["execution"]}, "calm.sqlite")
    assert (undisturbed.complete, undisturbed.repeated) == (20, 0)
    assert_same(mended_results, expected, but_for=THOUGHTS)


def test_faults_of_transport_leave_no_trace_in_the_results(stub: StubProvider) -> None:
    spec = changed(SPEC, replicates=6)
    tries, requests = evenly(0.5, (*QUICK, "trickle")), evenly(0.2, Faults.CONTENT)
    stub.faults = Faults(tries=tries, requests=requests, trickle_s=0.01)
    disturbed, found = carry_out(spec, "s.sqlite")
    log = settled(stub, Faults(requests=requests))
    calm, expected = carry_out(spec, "calm.sqlite")
    assert (disturbed.complete, calm.complete, calm.repeated) == (6, 6, 0)
    assert disturbed.made == calm.made == len(expected.calls)
    # Nobody gave up on a reply here, so that every try is on both sides' books, and each reply was paid once.
    assert disturbed.repeated == sum(not answers(exchange) for exchange in log) > calm.made / 4
    assert len(log) == disturbed.made + disturbed.repeated
    assert len(seeds_of(log)) == disturbed.made
    assert_same(found, expected)


def test_without_faults_the_wire_changes_nothing(stub: StubProvider) -> None:
    options = {"base_url": stub.base_url, "api_key_env": "OPENAI_API_KEY"}
    spec = changed(SPEC, replicates=3, model__options=options)
    summary, found = carry_out(spec, "s.sqlite")
    assert stub.authorizations == {"Bearer of-no-use-here"}
    assert (summary.complete, summary.repeated, stub.paid_twice) == (3, 0, {})
    assert len(stub.log) == summary.made
    expected = carry_out(spec, "within.sqlite", WithinTheProcess.of(stub))[1]  # type: ignore[arg-type]
    # What only a provider tells is missing within the process.
    told = ("model", "finish_reason", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "cost")
    assert_same(found, expected, but_for=told)


# --- an end half way ---------------------------------------------------------------------------------------------


def counted_down(n: int, then: Callable[[], object]) -> Callable[[StubRequest], None]:
    """A plan without faults that does something at the n-th request."""
    left = iter(range(n - 1, -1, -1))

    def plan(request: StubRequest) -> None:
        if next(left, None) == 0:
            then()

    return plan


def test_a_sweep_stopped_half_way_under_faults_goes_on_to_the_same(stub: StubProvider) -> None:
    spec = changed(SPEC, replicates=8)
    tries, requests = evenly(0.3, QUICK), evenly(0.1, Faults.CONTENT)
    with under_way(Invocation(load_experiment(spec), "s.sqlite")) as (runner, future):
        stop = counted_down(50, lambda: background.call_soon(runner.stop))
        stub.faults = Faults(tries=tries, requests=requests, plan=stop)
        stopped = future.result()
    first = settled(stub, Faults(tries=tries, requests=requests))
    assert stopped.stopped
    assert 0 < len(stopped.errors) == 8 - stopped.complete
    stored = loaded("s.sqlite").calls
    assert len(stored) == stopped.made < 8 * 12
    assert_paid_once(first, stored)

    went_on, results = carry_out(spec, "s.sqlite")
    second = settled(stub, Faults(requests=requests))
    assert (went_on.complete, went_on.errors) == (8, {})
    assert stopped.made + went_on.made == len(results.calls)
    assert not seeds_of(second) & {int(seed) for seed in stored["seed"]}
    assert_nothing_imputed(stub, [*first, *second], "s.sqlite", results)
    assert_same(results, carry_out(spec, "calm.sqlite")[1])


def test_a_sweep_killed_half_way_under_faults_asks_for_nothing_it_has(stub: StubProvider) -> None:
    spec = changed(SPEC, replicates=6, execution={**SPEC["execution"], "max_concurrency": 4})
    Path("provided.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    tries = evenly(0.3, QUICK)
    # A reply takes a moment here, so that some are on record by the time of the kill.
    stub.latency = 0.02
    with Command("run", "provided.yaml", "--store", "s.sqlite") as process:
        stub.faults = Faults(tries=tries, plan=counted_down(60, lambda: process.send_signal(signal.SIGKILL)))
        assert process.wait() == -signal.SIGKILL
    stub.latency = 0.0
    first = settled(stub, Faults(tries=tries))
    stored = loaded("s.sqlite").calls
    assert 0 < len(stored) < 6 * 12
    assert_paid_once(first, stored)

    went_on, results = carry_out(spec, "s.sqlite")
    second = settled(stub)
    assert (went_on.complete, went_on.errors) == (6, {})
    assert went_on.made == 6 * 12 - len(stored)
    assert not seeds_of(second) & {int(seed) for seed in stored["seed"]}
    assert_same(results, carry_out(spec, "calm.sqlite")[1])


# --- what is done about replies that are no answers --------------------------------------------------------------


def replies(reask: int, then: str | None = None) -> dict[str, dict[str, Any]]:
    """The same treatment of replies of every kind that are no answers."""
    told = {"reask": reask} | ({} if then is None else {"then": then})
    return dict.fromkeys(("refused", "empty", "truncated"), told)


def test_fail_ends_the_run_whose_reply_is_no_answer(stub: StubProvider) -> None:
    spec = changed(SPEC, replicates=8, model__replies=replies(0, "fail"))
    stub.faults = Faults(tries=evenly(0.2, QUICK), requests=evenly(0.05, ("empty", "truncated", "refused")))
    summary, results = carry_out(spec, "s.sqlite")
    log = settled(stub)
    assert 0 < len(summary.errors) == 8 - summary.complete < 8
    calls = results.calls
    rejected = calls[calls["acceptance"] == "rejected"]
    # Each run failed of a reply of its own, which stays on record with what it was. Others may have been on their way.
    assert {*rejected["run_id"]} == {*summary.errors}
    for run_id, error in summary.errors.items():
        mine = rejected[rejected["run_id"] == run_id]
        places = mine["turn"].astype(str) + mine["agent"].map(", agent {} (".format)
        assert any(
            f"turn {place}" in error and error.endswith(f"the reply was {status}")
            for place, status in zip(places, mine["status"], strict=True)
        )
    assert set(calls.loc[calls["acceptance"] == "accepted", "status"]) == {"answered"}
    assert_paid_once(log, calls)

    # Whoever carries it out anew asks once more, and pays for nothing that is on record.
    mended, again = carry_out(spec, "s.sqlite")
    second = settled(stub)
    assert (mended.complete, mended.errors) == (8, {})
    assert mended.made == len(again.calls) - len(calls)
    assert not seeds_of(second) & {int(seed) for seed in calls["seed"]}
    asked_again = again.calls.merge(rejected[["run_id", "turn", "call"]], on=["run_id", "turn", "call"])
    both = asked_again.groupby(["run_id", "turn", "call"])["acceptance"].agg(list)
    assert [*both] == [["rejected", "accepted"]] * len(rejected)
    assert_paid_once([*log, *second], again.calls)


def test_fail_ends_the_run_anew_where_the_reply_is_none_again(stub: StubProvider) -> None:
    spec = changed(SPEC, interaction__steps=1, model__replies=replies(0, "fail"))
    for attempts in (1, 2, 3):
        stub.faults = Faults(requests={"refused": 1.0})
        summary, results = carry_out(spec, "s.sqlite", slots=1)
        assert list(results.calls["acceptance"]) == ["rejected"] * attempts
        assert (summary.made, len(summary.errors), len(seeds_of(settled(stub)))) == (1, 1, 1)


def test_asking_again_mends_what_is_a_matter_of_the_try(stub: StubProvider) -> None:
    spec = changed(SPEC, replicates=6, model__replies=replies(5))
    stub.faults = Faults(tries={**evenly(0.2, QUICK), **evenly(0.2, ("empty", "truncated", "refused"))})
    summary, results = carry_out(spec, "s.sqlite")
    log = settled(stub)
    calls = results.calls
    assert (summary.complete, summary.errors) == (6, {})
    assert set(results.turns["status"]) == {"answered"}
    rejected = calls[calls["acceptance"] == "rejected"]
    assert {*rejected["status"]} == {"empty", "truncated", "refused"}
    # Every question asked again is a call of its own, with a seed of its own, paid and kept.
    assert len(calls) == 6 * 12 + len(rejected) == len(seeds_of(log))
    assert list(calls.groupby(["run_id", "turn"])["attempt"].max() + 1) == list(
        calls.groupby(["run_id", "turn"]).size()
    )
    assert_nothing_imputed(stub, log, "s.sqlite", results)
    assert_paid_once(log, calls)


def test_asking_again_in_vain_takes_the_last_reply_as_what_it_is(stub: StubProvider) -> None:
    spec = changed(SPEC, interaction__steps=2, model__replies={"empty": {"reask": 2}})
    stub.faults = Faults(requests={"empty": 1.0})
    summary, results = carry_out(spec, "s.sqlite")
    # Nobody reviews a post that is not there.
    assert (summary.complete, len(results.turns), len(results.calls)) == (1, 4, 6)
    assert list(results.calls["acceptance"]) == ["rejected", "rejected", "accepted"] * 2
    assert list(results.turns["status"]) == ["empty", "skipped"] * 2
    assert len(results.opinions) == 2
    assert results.opinions["value"].isna().all()


# --- failures for good, budgets ----------------------------------------------------------------------------------


def test_what_concerns_a_single_prompt_ends_its_run_and_the_others_finish(stub: StubProvider) -> None:
    spec = changed(SPEC, replicates=2, sweep={"topic.name": ["flat-earth", "t-rex"]})
    experiment = load_experiment(spec)
    doomed = {run.run_id: run.spec.topic for run in experiment.runs if "t-rex" in run.cell.label}
    topic = next(iter(doomed.values()))
    text = experiment.resources.topic(topic).claim(topic.framing).text

    def plan(request: StubRequest) -> str | None:
        return "too-long" if any(text in message.content for message in request.messages) else None

    stub.faults = Faults(tries=evenly(0.2, QUICK), plan=plan)
    summary, results = carry_out(experiment, "s.sqlite")
    assert summary.complete == 2
    assert {*summary.errors} == {*doomed} == {*results.runs.loc[results.runs["status"] == "incomplete", "run_id"]}
    assert all("exceeds the context" in error for error in summary.errors.values())
    # Nothing of it is tried again, and each run asks for itself.
    failed = [exchange.request.identity for exchange in stub.log if exchange.fault == "too-long"]
    assert len(doomed) <= len(failed) == len(set(failed))
    assert not results.calls["run_id"].isin(doomed).any()


#: What any request to a model meets, and the words for it.
REFUSED = {
    "quota": "The quota is used up",
    "unauthorized": "Incorrect API key provided",
    "unknown-model": "There is no model 'other'",
}


@pytest.mark.parametrize(("kind", "slots"), [("quota", 1), ("unauthorized", 8), ("unknown-model", 8)])
def test_what_any_request_meets_ends_all_runs_of_the_model_at_once(stub: StubProvider, kind: str, slots: int) -> None:
    spec = changed(SPEC, replicates=8, sweep={"model.name": ["openai:stub", "openai:other"]})
    experiment = load_experiment(spec)
    doomed = {run.run_id for run in experiment.runs if "other" in run.cell.label}
    assert len(doomed) == 8
    stub.faults = Faults(tries=evenly(0.2, QUICK), plan=lambda asked: kind if asked.model == "other" else None)
    summary, results = carry_out(experiment, "s.sqlite", slots=slots)
    log = settled(stub)
    # Only requests that were under way together have met it.
    assert 1 <= sum(exchange.fault == kind for exchange in log) <= slots
    # All runs of the model end with the one error, each at the call it would have made; the others go on.
    assert {*summary.errors} == doomed == {*results.runs.loc[results.runs["status"] == "incomplete", "run_id"]}
    causes = {error.partition("): ")[2] for error in summary.errors.values()}
    assert len(causes) == 1
    assert REFUSED[kind] in causes.pop()
    assert all(f"run {run_id}, step " in error for run_id, error in summary.errors.items())
    assert summary.complete == 8

    # The next sweep tries again, and asks for nothing it has.
    again, results = carry_out(experiment, "s.sqlite", slots=slots)
    assert (again.complete, again.errors) == (16, {})
    assert {exchange.request.model for exchange in stub.log} == {"other"}
    assert summary.made + again.made == len(results.calls)


def test_a_judge_that_any_request_to_fails_is_asked_once_and_runs_are_complete(stub: StubProvider) -> None:
    judge = {"name": "chat", "options": {"model": "openai:other"}}
    spec = changed(SPEC, replicates=4, measurement={"classifier": judge, "texts": ["report", "post"]})
    stub.faults = Faults(plan=lambda asked: "unknown-model" if asked.model == "other" else None)
    summary, results = carry_out(spec, "s.sqlite", slots=1)
    assert stub.played["unknown-model"] == 1
    assert set(results.runs["status"]) == {"complete"}
    assert len(summary.errors) == 4
    assert all("There is no model 'other'" in error for error in summary.errors.values())


def test_an_option_that_is_refused_half_way_ends_all_runs_of_the_model(stub: StubProvider) -> None:
    spec = changed(SPEC, replicates=12, execution={**SPEC["execution"], "max_concurrency": 4})
    sweep = load_experiment(spec)
    stub.faults = Faults(plan=counted_down(40, lambda: setattr(stub, "unsupported", ("temperature",))))
    summary = ended(sweep, "s.sqlite")
    refused = [exchange for exchange in settled(stub) if exchange.status == 400]
    assert 1 <= len(refused) <= 4
    assert 0 < len(summary.errors) == 12 - summary.complete
    assert all("Unsupported parameter: 'temperature'" in error for error in summary.errors.values())
    assert len({error.partition("): ")[2] for error in summary.errors.values()}) == 1
    stub.unsupported = ()
    again = ended(sweep, "s.sqlite")
    assert (again.complete, again.errors) == (12, {})
    assert summary.made + again.made == len(loaded("s.sqlite").calls)


@pytest.mark.parametrize("slots", [3, 64])
def test_a_budget_of_calls_is_kept_under_faults(stub: StubProvider, slots: int) -> None:
    execution = {**SPEC["execution"], "budget": {"calls": 50}, "max_concurrency": slots}
    stub.faults = Faults(tries=evenly(0.4, QUICK))
    Path("provided.yaml").write_text(yaml.safe_dump(changed(SPEC, replicates=6, execution=execution)), encoding="utf-8")
    result = CliRunner().invoke(app, ["run", "provided.yaml", "--store", "s.sqlite"])
    assert (result.exit_code, "execution.budget.calls" in result.stderr) == (3, True)
    calls = loaded("s.sqlite").calls
    # All that may be paid is paid, and failures cost nothing of it.
    assert len(calls) == sum(stub.served.values()) == 50
    assert_paid_once(stub.log, calls)
    # What is missing is done when the limit is lifted, and only that.
    before = settled(stub, Faults(tries=evenly(0.4, QUICK)))
    summary = ended(changed(SPEC, replicates=6), "s.sqlite")
    assert (summary.complete, summary.made) == (6, 6 * 12 - 50)
    assert not seeds_of(filter(answers, before)) & seeds_of(filter(answers, stub.log))


def test_a_budget_of_tokens_is_kept_under_faults(stub: StubProvider) -> None:
    budget = {**SPEC["execution"], "budget": {"tokens": 20_000}}
    stub.faults = Faults(tries=evenly(0.4, QUICK))
    summary, results = carry_out(changed(SPEC, replicates=6, execution=budget), "s.sqlite")
    assert "execution.budget.tokens" in str(summary.exceeded)
    assert (summary.stopped, summary.complete < 6) == (True, True)
    used = results.calls["input_tokens"].sum() + results.calls["output_tokens"].sum()
    assert used == summary.paid.input_tokens + summary.paid.output_tokens
    assert 10_000 < used <= 20_000


# --- a provider that changes, a provider with limits ---------------------------------------------------------------


def test_a_model_that_changes_half_way_is_noticed(stub: StubProvider) -> None:
    stub.model = lambda sent: "stub-1" if sent < 12 else "stub-2"
    summary, results = carry_out(changed(SPEC, replicates=2), "s.sqlite")
    assert (summary.complete, summary.made) == (2, 24)
    assert {*results.calls["model"]} == {"stub-1", "stub-2"}
    with open_store("s.sqlite", write=False) as store:
        (found,) = store.models(results.run_ids).values()
    (one, other) = (f"{model} ({fingerprint})" for model, fingerprint in sorted(found) if fingerprint[:3] == "fp_")
    said = CliRunner().invoke(app, ["status", "s.sqlite"]).output
    assert f"provided: Replies of openai:stub came from {one}, {other}." in said


@pytest.mark.parametrize("limits", [{"max_in_flight": 4}, {"rate": 100.0, "burst": 1}], ids=str)
def test_a_provider_with_limits_slows_a_sweep_and_fails_none_of_it(stub: StubProvider, limits: dict[str, Any]) -> None:
    for name, value in limits.items():
        setattr(stub, name, value)
    stub.latency = 0.005
    summary, results = carry_out(changed(SPEC, replicates=8), "s.sqlite")
    assert (summary.complete, summary.errors, stub.paid_twice) == (8, {}, {})
    assert len(results.calls) == sum(stub.served.values()) == 8 * 12
    turned_away = stub.played["over-limit"]
    assert 0 < turned_away == summary.repeated < 8 * summary.made
    assert stub.peak_in_flight <= limits.get("max_in_flight", 64)
