"""Replace what may not be passed on, or what blind review hides, by checksums."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from opinionsim.foundation.spreadsheets import texts_changed
from opinionsim.foundation.streams import canonical_json, digest
from opinionsim.messages import numbers_in
from opinionsim.store import COLUMNS, Results
from opinionsim.surveys import Survey

#: Kinds of files that can say that they may not be passed on, with the contents in prompts that are withheld then.
_BLOCKS = {
    "personas": ("persona",),
    "survey": ("persona",),
    "record": ("persona", "post"),
    "topic": (),
    "messages": (),
    "prompt pack": (),
}
#: Fields of a file that tell what it is, and not what it holds.
_ABOUT = frozenset(
    ["name", "title", "category", "accepted", "sensitive", "masked", "source", "licence", "pass_on", "card", "mapping"]
)
#: Texts with fewer characters and words may be part of anything: they are replaced only where they stand alone. Of what
#: people said, so are all with fewer characters: others say "I do not know" too.
_SHORT, _FEW = 20, 3
#: Where a text may begin or end: not within a word.
_EDGE = r"(?:(?<!\w)|(?!\w))"
#: Folders before the name of a file, and fields by whose values authors could be known.
_FOLDERS = re.compile(
    r"(?:(?<=file://)|(?<=sqlite:///)|(?<![\w/.]))(?:[A-Za-z]:)?[/\\](?:[^\s/\\'\":,;]+[/\\])+|(?<![\w/])~[/\\]"
)
#: A text that is a path and nothing else; its folders may have blanks. Kinds of contents that are named by paths.
_PATH = re.compile(r"(?:[a-z]+:|file://|sqlite:///)?((?:(?:[A-Za-z]:)?[/\\]|~[/\\])(?!/)[^\n]*[/\\])[^\n/\\]+")
_FILED = ("personas", "topics", "messages", "networks", "surveys")
_TELLING = (
    *("git", "protocol", "base_url", "openai_api_base", "azure_endpoint"),
    *("organization", "openai_organization"),
)
#: How respondents of surveys are named, by the number of their row.
_RESPONDENT = re.compile(r"\bRespondent \d+\b")


def released(results: Results, *, anonymous: bool = False) -> Results:
    """Return the same results with checksums instead of what may not be passed on.

    This concerns the contents of files that say ``pass_on: false`` (personas, topics, messages, prompt packs); the
    respondents of surveys and the people of imported tables, unless their mapping says ``pass_on: true``; and the
    words of people at seats, unless they have consented to publication. Checksums replace them in frames, prompts,
    transcripts, specification and manifest, even if somebody else quotes them in full.

    Parameters
    ----------
    results : Results
        From :func:`opinionsim.load` or :func:`opinionsim.run`.
    anonymous : bool
        Whether they are for blind review. If so, they omit the state of the repository, folders of files, server
        addresses and the protocol number, which could identify the authors.

    Returns
    -------
    Results
        Results whose `withheld` has a sentence for each thing left out, or the given results if nothing is left out.
        Their tables are the tables of the given results.

    Notes
    -----
    A checksum is ``[withheld sha256:...]`` with 24 digits of the SHA-256 of the text, after a digest of everything that
    is withheld. The owner of the store can compute it, but nobody else can find a short text by trial and error.
    Opinions, ratings and ranks are numbers and are passed on. Paraphrases of a text by others are not found.
    """
    if isinstance(results, Released):
        return results
    found = Released(results, anonymous=anonymous)
    return found if found.withheld or anonymous else results


class Released(Results):
    """Results without what may not be passed on; made by :func:`released`."""

    def __init__(self, results: Results, *, anonymous: bool = False) -> None:
        row = results.design_row
        super().__init__(results.url, row, results.designs, results.under_way, own_parts=results.own_parts)
        self.failed = results.failed
        files = [*_files(row.manifest), *_files(row.spec)]
        kinds = {kind for kind, _, _ in files}
        self._kinds = kinds
        self._anonymous = anonymous
        self._texts: set[str] = set()
        self._said: set[str] = set()
        self._columns: set[str] = set()
        self._people: set[tuple[str, int]] = set()
        for kind, _, node in files:
            self._take(kind, node)
        told = dict.fromkeys(_sentence(kind, name) for kind, name, _ in files)
        told |= dict.fromkeys(self._take_people(results))
        if not told and not anonymous:
            return
        folders = sorted({*_folders(row.manifest, row.spec)}, key=len, reverse=True) if anonymous else []
        self._folders = re.compile("|".join([*(rf"(?<!\w){re.escape(each)}" for each in folders), _FOLDERS.pattern]))
        self.withheld = tuple(told)
        self._key = digest(canonical_json([sorted(self._texts), [node for _, _, node in files]]))
        whole = sorted((each for each in self._texts if each.strip()), key=len, reverse=True)
        long = [each for each in whole if len(each) >= _SHORT or (_is_long(each) and each not in self._said)]
        self._long = {each: re.compile(_EDGE + re.escape(each) + _EDGE) for each in long}
        self._patterns = [*_delimited(row.manifest, {block for kind in kinds for block in _BLOCKS[kind]})]
        if short := "|".join(re.escape(each) for each in whole if each not in self._long):
            self._patterns.append(re.compile(f'(?m)((?:^|[\n>:"\u201c])[ \t]*)({short})(?=\\s*(?:$|[<"\u201d]))'))
        self.design_row = replace(row, spec=self._json(row.spec), manifest=self._json(row.manifest))

    def _take(self, kind: str, node: Mapping[str, Any]) -> None:
        """Take in the texts of a file, and the columns of agents that tell of its persons."""
        if kind == "survey":
            survey = Survey.from_content(node)
            names = {*survey.mapping.variables, "weight", "background"}
            known = [(column, each.record) for each in survey.personas().personas for column in survey.mapping.columns]
            told = {column.sentence(of[column.variable]) for column, of in known if column.variable in of}
        else:
            names = {"background", *(name for each in node.get("personas", ()) for name in each.get("attributes", ()))}
            texts = (each for _, each in nodes(node, skip=_ABOUT) if isinstance(each, str))
            told = {each for each in texts if kind != "personas" or _is_long(each)}
        self._texts |= told if kind != "record" else set()
        self._columns |= {prefix + name for name in names for prefix in ("", "persona.")} - COLUMNS["agents"].keys()

    def _take_people(self, results: Results) -> Iterator[str]:
        """Take in what people wrote who have not consented that it is published, and say whose words they are."""
        agents = results.agents
        people = agents[(agents["evidence"] == "human") & ~agents["publishes"]]
        if people.empty:
            return
        imported = {run.run_id for run in results.design_row.runs if run.declared.get("recorded")}
        recorded = people["run_id"].isin(imported)
        if "record" not in self._kinds:
            people, recorded = people[~recorded], recorded[~recorded]
        self._people = set(people[["run_id", "agent"]].itertuples(index=False, name=None))
        wrote = results.turns.merge(people[["run_id", "agent"]])
        texts = {part.strip() for text in wrote["message"] for part in (text, *text.splitlines())}
        # What a scale calls its points are words of the study; numbers are passed on.
        labels = set((results.spec.get("scale") or {}).get("labels", ()))
        self._said = {text for text in texts - labels if not _is_numbers(text)}
        self._texts |= self._said
        if n := (~recorded).sum():
            yield (
                f"What people wrote at {n} seats is withheld, because they have not consented to publication "
                "(publication in the consent text, and their answer to it)."
            )

    def mark(self, text: str) -> str:
        """The checksum that replaces a text."""
        return f"[withheld sha256:{digest(self._key + text)}]"

    def shown(self, run_id: str, value: Any) -> Any:
        """A text of a run, or JSON values with its turns, as others see it."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            by = (run_id, value.get("agent"))
            own = {name: self._whole(value[name]) for name in ("text", "reply") if name in value and by in self._people}
            return {name: own.get(name) or self.shown(run_id, each) for name, each in value.items()}
        return [self.shown(run_id, each) for each in value] if isinstance(value, list | tuple) else value

    def _prompted(self, text: str) -> str:
        """A message of a prompt; nothing of it where its wording may not be passed on."""
        return self.mark(text) if "prompt pack" in self._kinds else self._text(text)

    def _whole(self, text: Any) -> Any:
        return self.mark(text) if isinstance(text, str) and not _is_numbers(text) else text

    def _text(self, text: str) -> str:
        """A text without what is withheld."""
        if self._anonymous:
            text = self._folders.sub("", text)
        for pattern in self._patterns:
            text = pattern.sub(lambda found: found[1] + self.mark(found[2]), text)
        for each, pattern in self._long.items():
            if each in text:
                text = pattern.sub(self.mark(each), text)
        return _RESPONDENT.sub(lambda found: self.mark(found[0]), text) if "survey" in self._kinds else text

    def _json(self, value: Any) -> Any:
        """JSON values of the specification or manifest without what is withheld."""
        if isinstance(value, Mapping):
            if _withheld(value) in ("", "record"):
                hidden = _TELLING if self._anonymous else ()
                return {self._text(n): None if n in hidden else self._json(each) for n, each in value.items()}
            return {
                n: each if n in _ABOUT or not each else self.mark(canonical_json(each)) for n, each in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._json(each) for each in value]
        return self._text(value) if isinstance(value, str) else value

    def _passed_on(self, name: str, frame: pd.DataFrame) -> pd.DataFrame:
        """A frame without what is withheld; those that only numbers are made of stay whole."""
        if name not in ("runs", "agents", "turns", "calls"):
            return frame
        found = texts_changed(frame, lambda value: self._text(value) if isinstance(value, str) else value)
        found = found.set_axis(frame.columns, axis=1).astype(frame.dtypes.to_dict())
        if name == "runs" or frame.empty:
            return found
        keys = [*zip(frame["run_id"], frame["agent"], strict=True)]
        if name == "agents":
            told = self._columns | (set(frame.columns) - COLUMNS["agents"].keys() if "record" in self._kinds else set())
            for column in told & set(frame.columns):
                # The row goes in too: equal values of two persons must not be seen to be equal.
                own = [
                    x if x != x or x is None else self.mark(f"{k} {column} {x}")
                    for k, x in zip(keys, frame[column], strict=True)
                ]
                found[column] = own
            return found
        column = "message" if name == "turns" else "reply"
        by = [key in self._people for key in keys]
        texts = zip(by, frame[column], found[column], strict=True)
        said = [self._whole(old) if own else new for own, old, new in texts]
        # As objects first: what pandas takes for texts by itself cannot hold half a surrogate pair.
        return found.assign(**{column: pd.Series(said, index=found.index, dtype=object).astype(frame[column].dtype)})


def _withheld(node: Mapping[str, Any]) -> str:
    """The kind of file that a mapping is the content of, if it may not be passed on; else empty."""
    if {"mapping", "rows", "values"} <= node.keys():
        return "" if node["mapping"].get("pass_on") else "survey"
    if "pack.yaml" in node:
        return "prompt pack" if yaml.safe_load(node["pack.yaml"]).get("pass_on") is False else ""
    if node.get("pass_on") is not False:
        return ""
    return next((kind for kind, field in _FIELDS.items() if field in node), "")


#: The field that tells apart what states `pass_on`: files, and a way of interacting that is a record of people.
_FIELDS = {"personas": "personas", "topic": "claims", "messages": "messages", "record": "kind"}


def _files(value: Any, name: str = "") -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Kind, name and content of the files that may not be passed on, within JSON values."""
    if isinstance(value, Mapping):
        if kind := _withheld(value):
            yield kind, name, value
        else:
            yield from chain.from_iterable(_files(each, str(key)) for key, each in value.items())
    elif isinstance(value, list | tuple):
        yield from chain.from_iterable(_files(each, name) for each in value)


def _folders(manifest: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[str]:
    """The folders of all files that a study names; one from which it was carried out has no beginning."""
    texts = {text for pair in nodes([manifest, spec]) for text in pair if isinstance(text, str)}
    yield from (found[1] for text in texts if (found := _PATH.fullmatch(text)))
    for name in chain.from_iterable(manifest.get("contents", {}).get(kind, ()) for kind in _FILED):
        folder, between, _ = name.rpartition("/")
        yield from [folder + between] if folder and Path(name).suffix else []


def nodes(value: Any, name: str = "", skip: Collection[str] = ()) -> Iterator[tuple[str, Any]]:
    """JSON values and everything within them, except some fields, each with the name of its field."""
    yield name, value
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from () if key in skip else nodes(each, str(key), skip)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from nodes(each, name, skip)


def _is_numbers(text: str) -> bool:
    """Whether a text holds no words: ratings, ranks or a ballot as they are published, or no letter at all."""
    return bool(numbers_in(text)) or not any(map(str.isalpha, text))


def _is_long(text: str) -> bool:
    return len(text) >= _SHORT or len(text.split()) >= _FEW


def _sentence(kind: str, name: str) -> str:
    """What is withheld of a file, and why."""
    if kind == "record":
        return "What people of an imported table wrote is withheld: its mapping does not say pass_on: true."
    if kind == "survey":
        return f"Respondents are withheld: the mapping of the survey {name!r} does not say pass_on: true."
    return f"The {kind} {name!r} {'are' if kind in ('personas', 'messages') else 'is'} withheld: pass_on is false."


def _delimited(manifest: Mapping[str, Any], blocks: set[str]) -> Iterator[re.Pattern[str]]:
    """What stands between the delimiters of these kinds of content, in every prompt pack."""
    pairs = set()
    for pack in manifest.get("contents", {}).get("prompts", {}).values():
        declared = yaml.safe_load(pack.get("pack.yaml", "")) or {}
        pairs |= {tuple(pair) for name, pair in declared.get("delimiters", {}).items() if name in blocks}
    for opening, closing in sorted(pairs):
        yield re.compile(f"(?s)({re.escape(opening)}\\s*)(.+?)(?=\\s*{re.escape(closing)})")
