"""The command check-model: what a chat model does in an agent's place, before a study is paid for."""

from __future__ import annotations

import json
from contextlib import suppress

from opinionsim.cli._console import columns, note, say, say_json, write_text
from opinionsim.cli._options import AsJson, Changes, Slots, read_spec
from opinionsim.cli._run import carry_out, end, report, store_of
from opinionsim.errors import SpecError, StoreError

#: Replies to a turn at most, where a specification says nothing else: each that is no answer is asked for twice again.
_REPLIES = 3


def check_model(
    model: str,
    store: str | None = None,
    study: str = "hundred",
    changes: Changes = None,
    max_concurrency: Slots = None,
    as_json: AsJson = False,
) -> None:
    """Ask a chat model 100 questions and print its card: what it does in an agent's place. Running it again resumes.

    Parameters
    ----------
    model : MODEL
        Chat model as specifications name it (see: opinionsim list models).
    store : STORE
        Where its replies are kept, and its card beside them. Default: results/check-MODEL.sqlite.
    study : SPEC
        Study whose price the card tells, played by this model. Default: one of 100 agents and 100 steps.
    """
    from opinionsim.audit import card_table, model_card
    from opinionsim.planning import card_file, plan, spell_seconds
    from opinionsim.running import Invocation
    from opinionsim.store import load, open_store

    name = card_file(model).stem
    experiment = read_spec("check_model", [f"name={name}", f"model.name={json.dumps(model)}", *(changes or ())], None)
    played = experiment.spec.model.model_dump(mode="json", exclude={"replies"})
    of, url = read_spec(study, [f"model={json.dumps(played)}"], None), store_of(experiment, store)
    with suppress(StoreError), open_store(url, write=False) as opened:
        others = sorted({row.name for row in opened.designs() if row.name.startswith("check-")} - {name})
        if others:
            raise SpecError(f"--store {url}: holds {', '.join(others)}, the check of another model; give another store")
    whole = Invocation(experiment, url, max_concurrency=max_concurrency)
    forecast = plan(experiment, loaded=whole.parts)
    note(f"{model}: at most {forecast.usage}")
    summary = carry_out(whole, forecast.calls)
    report(url, summary)
    end(summary)
    card = model_card(load(url, name))
    usable, length, latency = (card["lines"][line]["value"] for line in ("usable", "tokens", "latency"))
    priced = plan(of, reply_tokens=max(length, 1.0), latency=latency)
    again = sum((1 - usable) ** n for n in range(_REPLIES))
    told = f"{of.spec.name} with this model: {priced.usage}, {spell_seconds(priced.sequential_s)} one call at a time"
    card["lines"]["price"] = {
        "text": f"{told}; {again:.2f} times that where texts are asked for again",
        "n": priced.calls,
    }
    path = card_file(model, url)
    write_text(path, f"{json.dumps(card, indent=1)}\n")
    say_json(card) if as_json else say(card_table(card).to_text(columns(100)))
