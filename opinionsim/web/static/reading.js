// What was said: an agent's story, a turn with its calls, a dialogue, and search.

import { ask, record, results } from "./source.js";
import { chip, choice, choices, counted, el, fill, go, head, here, link, signed, small, strong } from "./parts.js";
import { table, terms, text, titled, to, turnLink, ways, whole, within } from "./parts.js";
import { Run } from "./opinions.js";

const PAGE = 50, FEW = 8;
const WORDLESS = {
  answered: "", empty: "said nothing", refused: "refused", filtered: "withheld by a filter of the provider",
  off_role: "gave no answer in role", left_out: "left out, by a sign of conduct", unreadable: "could not be read",
  skipped: "was not asked, since nothing was left to read",
  silent: "made no remark", truncated: "The text was cut off here.",
};

// What a view of one run begins with: its heading and the ways on, the run, and answers about it.
async function opened(id, title, given, signal, ...questions) {
  const asked = [["", { row: given.row }], ...questions].map(([what, more]) => ask(`runs/${id}${what}`, more, signal));
  const [answer, ...more] = await Promise.all(asked), run = new Run(answer, given);
  head(`${title(run)} · ${titled(run)}`, [run.about.stamp], run.state);
  return [ways("This run", link("the run", within(id)), link("its dialogue", within(id, ["dialogue"]))), run, ...more];
}

// A part of a list, with links to what comes before and after.
function paged({ from, total, turns, hits, note }, items) {
  const shown = (turns ?? hits).length, page = (start, words) => link(words, here({ from: start || "" }));
  return [small(note), el("ol", { class: "lines" }, items), ways("Pages",
    el("span", {}, total ? `${whole(from + 1)} to ${whole(from + shown)} of ${whole(total)}` : "nothing found"),
    from > 0 && page(Math.max(0, from - PAGE), "before"), from + shown < total && page(from + shown, "after"))];
}

// Something that was said: who it was, and what belongs to it.
const item = (kind, who, ...parts) => el("li", { class: `line ${kind}` }, el("p", { class: "who" }, who), parts);
const agentLink = (run, agent, name, more) => strong(link(name, within(run, ["agent", agent], more)));

// A turn: what its author had read, what it said, and how that was coded.
function card(run, line, received) {
  const codes = line.codes.map(({ instrument, value, about, probabilities }) => {
    const own = run.instruments.find(({ id }) => id === instrument), sure = Math.max(...(probabilities ?? []));
    return chip(`${own?.variable ?? "coded"} ${signed(value)} `, own?.labels[own.points.indexOf(value)],
      value !== null && sure > 0 && ` (${signed(100 * sure, 0)} %)`, about !== null && ` about turn ${about}`);
  });
  const changed = !!line.change && chip(`changed by ${line.change > 0 ? "+" : ""}${signed(line.change)}`,
    line.alone && ` ${line.alone}`);
  const instead = run.about.beside[line.kind], wordless = instead ?? WORDLESS[line.status] ?? line.status;
  const who = line.given ? strong("Given text") : agentLink(run.run_id, line.agent, run.name(line.agent));
  const more = `turn ${line.turn}: prompts, cost`;
  return item(line.kind, [who, ` step ${line.step}, ${line.act} `, changed, turnLink(run.run_id, line.turn, more)],
    received, !instead && text(line.text), text(wordless, "wordless", "p"),
    line.reply && el("details", {}, el("summary", {}, `as it came, with ${line.taken.replaceAll(" ", ", ")}`), text(line.reply)),
    el("p", {}, codes, (line.signs ?? "").split(" ").filter(Boolean).map((sign) => chip(`shows ${sign}`))));
}

// Who a message was from that a turn had read.
const author = (run, ref, { agent, name, given }) => (agent == null || Number.isNaN(Number(ref)) ? strong(name ?? ref)
  : [strong(given ? "given text" : run.name(agent)), " ", turnLink(run.run_id, ref)]);

const quoted = (run, line, read) => (line.reads.length ? line.reads.map((ref) => el("blockquote", {},
  small("read ", author(run, ref, read[ref] ?? {}), read[ref]?.value != null && `, coded ${signed(read[ref].value)}`),
  text(read[ref]?.text ?? "Its words stand in the prompt of this turn."))) : small("It read nothing new."));

const heard = (run, line, read) => line.reads.length > 0 && small("has read ",
  line.reads.slice(0, FEW).map((ref, place) => [place > 0 && ", ", author(run, ref, read[ref] ?? {})]),
  line.reads.length > FEW && ` and ${line.reads.length - FEW} more`);

// An agent's story: what it read in full, what it said, and the order of time or of change.
export async function agentView([id, agent], given, signal) {
  const { order, from, instrument, kind } = given;
  const [nav, run, who, found] = await opened(id, (run) => run.name(Number(agent)), given, signal,
    [`/agents/${agent}`], ["/turns", { agent, order, from, instrument, kind, count: PAGE }]);
  return [nav, terms({ Role: who.role, "Played by": who.model, Evidence: who.evidence,
    "Assigned opinion": who.assigned == null ? "none" : signed(who.assigned), ...who.persona }),
  choices(choice("Order", "order", [["", "as it happened"], ["change", "largest change first"]], order)),
  paged(found, found.turns.map((line) => card(run, line, quoted(run, line, found.read))))];
}

export async function turnView([id, number], given, signal) {
  const turn = Number(number), title = () => `Turn ${turn}`;
  const [nav, run, found] = await opened(id, title, given, signal, [`/turns/${turn}`]);
  const { turn: line, calls, currency, read, left_out: left } = found;
  const gone = (part) => left?.some((said) => RegExp(part, "i").test(said)) && `${part} were left out of this file.`;
  const sum = (field) => calls.reduce((total, call) => total + (call[field] ?? 0), 0);
  const cost = calls.some((call) => call.cost != null) ? `cost ${signed(sum("cost"), 6)} ${currency ?? ""}`
    : "cost unknown, since no price is on record";
  const tokens = `${whole(sum("input_tokens"))} tokens in, ${whole(sum("output_tokens"))} tokens out`;
  return [nav, ways("Turns", turn > 0 && turnLink(id, turn - 1, "turn before"), turnLink(id, turn + 1, "turn after"),
    link("the figures at this step", within(id, [], { step: line.step }))),
  el("ol", { class: "lines" }, card(run, line, quoted(run, line, read))), el("h2", {}, "Calls"),
  el("p", {}, calls.length ? `${counted(calls.length, "call")}: ${tokens}, ${cost}.`
    : gone("Calls") || "No model was asked for it.", calls.length > 0 && ` ${gone("Prompts") || ""}`),
  calls.map(callCard)];
}

function callCard({ call, attempt, acceptance, reason, prompt, reply, published, reasoning, arrived_at: _, ...facts }, place) {
  const said = (name, what) => what && el("section", {}, el("h3", {}, name), text(what, "shown"));
  const fact = ([name, value]) => [name.replaceAll("_", " "), typeof value === "number" ? signed(value, 6) : value];
  return el("details", { class: "card", open: place === 0 },
    el("summary", { dir: "auto" }, [`${call}, attempt ${attempt + 1}`, acceptance, reason].filter(Boolean).join(": ")),
    terms(Object.fromEntries(Object.entries(facts).map(fact))),
    prompt.map((message) => said(`Prompt, ${message.role}`, message.text)),
    said("Reasoning", reasoning), said("Reply", reply), said("What readers got", published));
}

export async function dialogueView([id], given, signal) {
  const [nav, run, found, made] = await opened(id, () => "Dialogue", given, signal,
    ["/turns", { from: given.from, count: PAGE, instrument: given.instrument, kind: given.kind }], ["/beyond"]);
  const lines = paged(found, found.turns.map((line) => card(run, line, heard(run, line, found.read))));
  const title = el("h2", {}, made.name ? `Dialogue: ${made.name}` : "Dialogue");
  return [nav, small([run.state, run.error].filter(Boolean).join(": ")),
    made.blocks?.map((each) => block(run, each)),
    el("div", { class: made.beside ? "columns" : "" }, el("section", {}, title, lines),
      made.beside && beside(id, made.beside))];
}

// What a run is beyond its turns, as its way of interacting has it: sections, texts below each other, tables.
function block(run, { title, blocks, lines, caption, columns, rows }, heading = "h2") {
  const by = ({ agent, turn, note, marks }) => [marks.map((mark) => chip(mark)), agent != null && strong(run.name(agent)),
    " ", turn != null && turnLink(run.run_id, turn), note && ` ${note}`];
  const cell = (each) => (Array.isArray(each) ? each.map((one) => el("div", {}, cell(one)))
    : each?.marks ? [by(each), text(each.text)] : text(each));
  if (rows) return table(caption, columns, rows.map((row) => row.map(cell)));
  if (lines) return el("ol", { class: "lines" }, lines.map((each) => item(each.own ? "own" : "", by(each), text(each.text))));
  return el("section", {}, el(heading, {}, title), blocks.map((each) => block(run, each, "h3")));
}

// What stands beside a dialogue, as it was at each moment, the last one open: titles above texts or lists of points.
function beside(id, { title, moments }) {
  const turns = (listed) => listed.map((turn) => [" ", turnLink(id, turn)]);
  const list = (points) => el("ul", {}, points.map(point));
  const point = ({ text: said, points, change, note, turns: cited }) => (change
    ? el("li", { class: change }, text(said, "", "span"),
      small(note, change !== "kept" && text(change, "change", "span"), turns(cited)), points.length > 0 && list(points))
    : text(cited.length ? [said, turns(cited)] : said, "", "li"));
  const part = ({ title: name, text: said, points }) => [el("h3", {}, name),
    said != null ? text(said) : points.length ? list(points) : small("none")];
  const moment = ({ title: name, parts }, place) => el("details", { open: place === moments.length - 1 },
    el("summary", {}, name), parts.map(part));
  return el("section", { class: "beside", tabindex: 0, "aria-label": title }, el("h2", {}, title), moments.map(moment));
}

export async function searchView(_, given, signal) {
  const found = await ask("search", given, signal), { experiment, design, q } = given;
  const field = el("input", { type: "search", value: q, "aria-label": "Text to find" });
  const search = (event) => (event.preventDefault(), go({ q: field.value }));
  const filter = (label, name, options) => choice(label, name, [["", "any"], ...options], given[name]);
  head(q ? `Search: ${q}` : "Search", [found.stamp]);
  return [record ? ways("This run", link("the run", within(record.run.run_id)))
    : ways("Experiment", link("the experiment", results(experiment, design))),
    el("form", { class: "choices", submit: search }, field, el("button", {}, "Search"),
      filter("Condition", "cell", found.cells), filter("Agent", "agent", found.agents),
      filter("Act", "act", found.acts), filter("Reply", "status", found.statuses)),
    paged(found, found.hits.map(hit))];
}

function hit({ run_id: id, row, run, turn, step, agent, name, given, act, excerpt: [before, mid, after] }) {
  const who = given ? "Given text" : name ? `${name} (agent ${agent})` : `Agent ${agent}`;
  return item("", [agentLink(id, agent, who, { row }),
    ` step ${step}, ${act} `, turnLink(id, turn, undefined, { row }), " ",
    link(`run ${run}`, to(["run", id], { row, step }), { class: "small" })],
  el("div", { class: "text", dir: "auto" }, before, mid && el("mark", {}, mid), after));
}
