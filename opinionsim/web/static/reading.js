// What was said: an agent's story, a turn with its calls, a dialogue, and search.

import { ask, record } from "./source.js";
import { choice, counted, el, fill, go, head, link, signed, table, terms, text, titled, whole } from "./parts.js";

const PAGE = 50, FEW = 8;
const WORDLESS = {
  empty: "said nothing", refused: "refused", skipped: "was not asked, since nothing was left to read",
  silent: "made no remark", truncated: "The text was cut off here.",
};
const small = (...what) => el("p", { class: "small", dir: "auto" }, what);
const turnLink = (id, turn, words = `turn ${turn}`) => link(words, ["run", id, "turn", turn], {}, { class: "small" });

// What a view of one run begins with: the run, its heading, and the ways on from here.
async function opened(id, what, signal, ...questions) {
  const run = ask(`runs/${id}`, {}, signal);
  const found = await Promise.all([run, ...questions.map(([path, given]) => ask(`runs/${id}/${path}`, given, signal))]);
  const names = new Map((found[0].agents ?? []).map((each) => [each.agent, each.name]));
  found[0].named = (agent) => names.get(agent) || `Agent ${agent}`;
  head(`${what} · ${titled(found[0])}`, found[0].about?.stamp, found[0].state);
  return found;
}

function ways(id, ...more) {
  const own = [link("the run", ["run", id]), link("its dialogue", ["run", id, "dialogue"])];
  return el("nav", { class: "ways", "aria-label": "This run" }, own, more);
}

// How much of a list is shown, and links to what comes before and after.
function paging({ from, total }, shown, parts, given) {
  const page = (start, words) => link(words, parts, { ...given, from: start || "" });
  return el("nav", { class: "ways", "aria-label": "Pages" },
    el("span", {}, total ? `${whole(from + 1)} to ${whole(from + shown)} of ${whole(total)}` : "nothing found"),
    from > 0 && page(Math.max(0, from - PAGE), "before"), from + shown < total && page(from + shown, "after"));
}

const spoken = (line) => [line.text && text(line.text),
  line.condition !== "answered" && el("p", { class: "wordless" }, WORDLESS[line.condition] ?? line.condition)];

function coded(run, line, all = false) {
  return line.codes.filter((code) => all || code.about === null).map((code) => {
    const known = run.instruments?.find((each) => each.id === code.instrument);
    const label = code.value === null ? "no opinion found" : known?.labels[known.points.indexOf(code.value)];
    const sure = code.value !== null && code.probabilities?.length && ` (${signed(100 * Math.max(...code.probabilities), 0)} %)`;
    return el("span", { class: "chip", dir: "auto" }, `${known?.variable ?? "coded"} ${signed(code.value)} `, label, sure,
      code.about !== null && ` about turn ${code.about}`);
  });
}

function received(id, line, read) {
  if (!line.reads.length) return small("It read nothing new.");
  return line.reads.map((ref) => {
    const known = read[ref] ?? {}, place = known.agent == null ? ref : turnLink(id, ref);
    return el("blockquote", {}, small("read ", el("strong", { dir: "auto" }, known.name || "a stranger"), ` ${known.kind ?? ""}, `, place,
      known.value != null && `, coded ${signed(known.value)}`), text(known.text));
  });
}

function turnCard(run, line, read, more = false) {
  const id = run.run_id, change = `changed by ${line.change > 0 ? "+" : ""}${signed(line.change)}`;
  return el("li", { class: `line ${line.kind}` },
    el("p", { class: "who" }, `step ${line.step}, ${line.act} `, line.change && el("strong", { class: "chip" }, change), " ",
      more || turnLink(id, line.turn, `turn ${line.turn}: prompts, replies, cost`)),
    received(id, line, read), spoken(line), el("p", {}, coded(run, line, more)));
}

export async function agentView(place, [id, agent], given, signal) {
  const { order, from, instrument, kind } = given, here = ["run", id, "agent", agent];
  const [run, who, found] = await opened(id, `Agent ${agent}`, signal, [`agents/${agent}`, {}],
    ["turns", { agent, order, from, instrument, kind, count: PAGE }]);
  head(`${run.named(who.agent)} · ${titled(run)}`, run.about?.stamp, run.state);
  const orders = [["", "as it happened"], ["change", "largest change first"]];
  fill(place, ways(id),
    terms([["Role", who.role], ["Played by", who.model], ["Evidence", who.evidence],
      ["Assigned opinion", who.assigned == null ? "none" : signed(who.assigned)], ...Object.entries(who.persona ?? {})]),
    el("div", { class: "choices" }, choice("Order", orders, order, (value) => go(here, { ...given, order: value, from: "" }))),
    el("ol", { class: "lines" }, found.turns.map((line) => turnCard(run, line, found.read))),
    paging(found, found.turns.length, here, given));
}

export async function turnView(place, [id, number], given, signal) {
  const turn = Number(number), [run, found] = await opened(id, `Turn ${turn}`, signal, [`turns/${turn}`, {}]);
  const { turn: line, calls, currency, read } = found, { agent, step } = line;
  const sum = (field) => calls.reduce((total, call) => total + (call[field] ?? 0), 0);
  const priced = calls.some((call) => call.cost != null);
  const cost = priced ? `cost ${signed(sum("cost"), 6)} ${currency ?? ""}` : "cost unknown, since no price is on record";
  const tokens = `${whole(sum("input_tokens"))} tokens in, ${whole(sum("output_tokens"))} tokens out`;
  fill(place,
    ways(id, link("the figures at this step", ["run", id], { step }), turn > 0 && turnLink(id, turn - 1, "turn before"),
      turnLink(id, turn + 1, "turn after")),
    el("h2", {}, link(run.named(agent), ["run", id, "agent", agent])),
    el("ol", { class: "lines" }, turnCard(run, line, read, " ")),
    el("h2", {}, "Calls"),
    el("p", {}, calls.length ? `${counted(calls.length, "call")}: ${tokens}, ${cost}.` : "No model was asked for this turn."),
    calls.map(callCard));
}

function callCard({ part, attempt, verdict, reason, prompt, reply, reasoning, arrived_at: _, ...facts }, place) {
  const said = (name, what) => what && el("section", {}, el("h3", {}, name), text(what, "shown"));
  const fact = ([name, value]) => [name.replaceAll("_", " "), typeof value === "number" ? signed(value, 6) : value];
  return el("details", { class: "card", open: place === 0 },
    el("summary", { dir: "auto" }, `${part}, attempt ${attempt + 1}: ${verdict}${reason ? `: ${reason}` : ""}`),
    terms(Object.entries(facts).map(fact)), prompt.map((message) => said(`Prompt, ${message.role}`, message.text)),
    said("Reasoning", reasoning), said("Reply", reply));
}

export async function dialogueView(place, [id], given, signal) {
  const here = ["run", id, "dialogue"], [run, found, made] = await opened(id, "Dialogue", signal,
    ["turns", { from: given.from, count: PAGE }], ["deliberation", {}]);
  const steps = Map.groupBy(found.turns, (line) => line.step);
  const lines = [...steps].flatMap(([step, turns]) => [
    el("li", { class: "step" }, el("h3", {}, step ? `Step ${step}` : "Before the first step")),
    turns.map((line) => dialogueLine(run, line, found.read))]);
  const dialogue = el("section", {}, el("h2", {}, made.structure ? `Dialogue: ${made.structure}` : "Dialogue"),
    el("ol", { class: "lines" }, lines), paging(found, found.turns.length, here, given));
  const argued = made.kind === "room" && made.analyses.length > 0 && analysis(id, made.analyses);
  const rounds = made.kind === "consensus" && made.rounds.map((round) => consensus(run, made.rule, round));
  fill(place, ways(id), small(run.state, run.error && `: ${run.error}`), rounds,
    argued ? el("div", { class: "columns" }, dialogue, argued) : dialogue);
}

function dialogueLine(run, line, read) {
  const heard = line.reads.map((ref) => (read[ref]?.agent == null ? read[ref]?.name ?? ref : `${read[ref].name} (turn ${ref})`));
  const others = heard.length > FEW ? `${heard.slice(0, FEW).join(", ")} and ${heard.length - FEW} more` : heard.join(", ");
  return el("li", { class: `line ${line.kind}` },
    el("p", { class: "who" }, el("strong", {}, link(run.named(line.agent), ["run", run.run_id, "agent", line.agent])),
      ` ${line.act} `, turnLink(run.run_id, line.turn), " ", coded(run, line)),
    heard.length > 0 && small(`has read ${others}`),
    line.kind === "analysis" ? el("p", { class: "wordless" }, "an analysis, which stands beside the dialogue") : spoken(line));
}

function consensus(run, rule, round) {
  const by = (each) => [el("span", { dir: "auto" }, each.name || run.named(each.agent)), " ", turnLink(run.run_id, each.turn)];
  const rated = (each) => Object.entries(each.rating ?? {}).map(([turn, value]) => `turn ${turn}: ${signed(value)}`).join(", ");
  const order = (one, other) => (one.place ?? Infinity) - (other.place ?? Infinity) || 0;
  return el("section", {}, el("h2", {}, `Round ${round.round}, by the rule ${rule}`),
    el("ol", { class: "lines" }, round.candidates.toSorted(order).map((each) => el("li", { class: `line ${each.winner ? "own" : ""}` },
      el("p", { class: "who" }, each.winner && el("strong", { class: "chip" }, "selected"), `place ${each.place ?? "–"} `,
        turnLink(run.run_id, each.turn), each.agreement != null && ` agreement ${signed(each.agreement)}`), text(each.text)))),
    round.ballots.length > 0 && table("Ballots", ["by", "order", "ratings"],
      round.ballots.map((each) => [by(each), text(each.order), rated(each)])),
    round.critiques.length > 0 && [el("h3", {}, "Critiques"),
      round.critiques.map((each) => el("blockquote", {}, small(by(each)), text(each.text)))]);
}

function analysis(id, analyses) {
  const shown = el("div"), turns = (numbers) => numbers.map((turn) => [" ", turnLink(id, turn)]);
  const item = (each, ...more) => el("li", { class: each.change }, el("span", { dir: "auto" }, each.text), small(each.id,
    each.change !== "kept" && el("span", { class: "change" }, each.change), turns(each.turns ?? [])), more);
  const list = (name, items, make = (each) => item(each)) => [el("h3", {}, name),
    items.length ? el("ul", {}, items.map(make)) : small("none")];
  const claim = (each) => item(each, el("ul", {}, each.premises.map((premise) => text(`because ${premise}`, "", "li")),
    each.counterarguments.map(({ counterargument, rebuttal }) => el("li", {}, text(`but ${counterargument}`, ""),
      rebuttal && text(`answer: ${rebuttal}`, "")))));
  const weak = (each) => el("li", { dir: "auto" }, `${each.fallacy}: ${each.explanation ?? ""}`, turns([each.turn]));
  const draw = (place) => {
    const { summary, agreements, questions, claims, fallacies } = analyses[place];
    fill(shown, el("h3", {}, "Summary"), text(summary), list("Agreed", agreements), list("Open questions", questions),
      list("Claims", claims, claim), fallacies.length > 0 && list("Weak reasoning", fallacies, weak));
  };
  const last = analyses.length - 1, moments = analyses.map((each, place) => [place, `turn ${each.turn}`]);
  draw(last);
  return el("section", { class: "analysis", tabindex: 0, "aria-label": "The argument" }, el("h2", {}, "The argument"),
    choice("As of", moments, last, (place) => draw(Number(place))), shown);
}

export async function searchView(place, _, given, signal) {
  if (record) throw new Error("This file holds one run: please use the browser's own search on its dialogue.");
  const found = await ask("search", given, signal), field = el("input", { type: "search", value: given.q, "aria-label": "Text to find" });
  const search = (more) => go(["search"], { ...given, q: field.value, ...more, from: "" });
  const filter = (label, name, options) => choice(label, [["", "any"], ...options], given[name], (value) => search({ [name]: value }));
  const plain = (options) => options.map((each) => [each, each]);
  head(given.q ? `Search: ${given.q}` : "Search", found.stamp);
  fill(place,
    el("nav", { class: "ways", "aria-label": "Experiment" }, link("the experiment", ["experiment", given.experiment], { design: given.design })),
    el("form", { class: "choices", submit: (event) => (event.preventDefault(), search()) }, field, el("button", {}, "Search"),
      filter("Condition", "cell", plain(found.cells)), filter("Agent", "agent", plain(found.agents)),
      filter("Act", "act", plain(found.acts)), filter("Reply", "condition", plain(found.conditions))),
    el("ol", { class: "lines" }, found.hits.map(hitCard)), paging(found, found.hits.length, ["search"], given));
}

function hitCard({ run_id: id, row, cell, turn, step, agent, name, act, excerpt: [before, mid, after] }) {
  return el("li", { class: "line" },
    el("p", { class: "who" }, el("strong", { dir: "auto" }, name || `Agent ${agent}`), ` ${act}, step ${step}, `,
      link(`run ${row}`, ["run", id], { step }), " ", turnLink(id, turn), " ", el("span", { class: "small", dir: "auto" }, cell)),
    el("div", { class: "text", dir: "auto" }, before, mid && el("mark", {}, mid), after));
}
