// A run: its figures under one scrubber, live, alone or beside another of its block, and its agents.

import { ask, follow, record, results } from "./source.js";
import { choice, choices, counted, el, fill, go, head, here, link, numbers, say, signed, small } from "./parts.js";
import { table, terms, titled, to, turnLink, ways, within } from "./parts.js";
import { Run } from "./opinions.js";
import { DARK, distribution, metric, network, trajectories } from "./figures.js";

const MOST = 1000;
const ABOUT = {
  cell: "Condition", claim: "Claim", question: "Question", task: "Task", model: "Model", interaction: "Interaction",
  network: "Network", replicate: "Replicate", n_agents: "Agents", steps: "Steps", validation: "Validation",
};
const KEY = "Rings, dotted lines and hollow bars are assigned opinions, which nobody measured. A line has the colour of"
  + " the opinion its agent was assigned: red below the middle of the scale, grey at it, blue above.";
let speed = 10; // steps a second, of every run

export async function runView([id], given, signal) {
  const view = { step: Number(given.step ?? NaN), most: NaN, runs: [], draws: [], signal };
  // The row of the address is that of the first run.
  const load = async (each, own) => measure(new Run(await ask(`runs/${each}`, { row: own.row }, signal), own), signal);
  view.runs = await Promise.all([load(id, given), ...given.with ? [load(given.with, { ...given, row: "" })] : []]);
  const [run, beside] = view.runs, { about, instruments, siblings } = run;
  const measures = instruments.map((each) => [each.id, `${each.variable}, ${each.classifier}`]);
  const others = [["", "no other run"], ...siblings.map((each) => [each.run_id, `run ${each.run}`])];
  head(view.runs.map(titled).join(" and "), view.runs.map((each) => each.about.stamp), run.state);
  const panels = view.runs.map((each) => panel(each, view)), box = scrubber(view);
  view.extend();
  return [
    ways("This run", link("dialogue", within(id, ["dialogue"])),
      !record && link(about.experiment, results(about.experiment_id, about.design)),
      link("search", to(["search"], { experiment: about.experiment_id, design: about.design }))),
    box,
    choices(choice("Instrument", "instrument", measures, run.instrument?.id, (id) => go({ instrument: id, kind: "" })),
      choice("Coded from", "kind", run.kinds, run.kind),
      choice("Metric", "metric", run.metric.names, run.metric.name),
      !record && choice("Beside it", "with", others, given.with)),
    el("div", { class: beside ? "pair" : "" }, panels)];
}

// A run with the metric that is chosen, by step, as far as it has come.
async function measure(run, signal) {
  const name = run.given.metric || "bias", asked = { instrument: run.instrument?.id, kind: run.kind, name };
  const none = ({ message }) => ({ name, meaning: message, values: [], names: [] });
  run.metric = run.kind ? await ask(`runs/${run.run_id}/metrics`, asked, signal).catch(none)
    : none({ message: "It cannot be computed, since nothing is measured." });
  run.version++;
  return run;
}

// One run's figures, which follow what is new.
function panel(run, view) {
  const state = el("span", { class: "state", dir: "auto" }), facts = el("div"), key = el("div"), cast = agents(run);
  const figures = [trajectories, network, metric, distribution].map((make) => make(run, view));
  const alone = view.runs.length < 2;
  const told = () => {
    fill(state, [run.state, run.error].filter(Boolean).join(": "));
    fill(facts, described(run));
    fill(key, run.assigned.some((value) => !Number.isNaN(value)) && small(KEY));
    for (const each of figures) each.box.hidden = !run.scaled && each !== figures[1];
    cast.change();
  };
  view.draws.push(...figures.map((each) => each.draw));
  told();
  follow(run, async () => {
    const since = `${run.generation}.${run.seq}`;
    const anew = run.take(await ask(`runs/${run.run_id}`, { since, row: run.given.row }, view.signal));
    await measure(run, view.signal);
    told();
    view.extend();
    if (anew) say("This run was begun anew.");
  }, say, view.signal);
  return el("section", { class: alone ? "solo" : "" },
    el("h2", { dir: "auto" }, alone ? "The run" : titled(run), " ", state),
    facts, figures.map((each) => each.box), key, cast.box);
}

function described({ about, instrument, kind, events, marked, scaled }) {
  const scale = instrument?.points.map((point, place) => `${signed(point)} ${instrument.labels[place] ?? ""}`);
  return [about.notices.map((notice) => el("p", { class: "problem", dir: "auto" }, notice)), terms({
    ...Object.fromEntries(Object.entries(ABOUT).map(([name, words]) => [words, about[name]])),
    Events: events.map((event) => `${event.label} at step ${event.step}`).join("; "), Scale: scale?.join(", "),
    Marked: scaled ? "" : marked,
    Opinions: kind ? `${instrument.variable} by ${instrument.classifier}, from ${kind}` : "not measured",
  })];
}

function scrubber(view) {
  const shown = el("output", { for: "step" }), jump = () => view.jump(Number(range.value));
  const range = el("input", { type: "range", id: "step", min: 0, step: 1, input: jump });
  const button = el("button", { type: "button", click: () => {
    if (!timer && view.step === view.most) view.jump(0);
    play(!timer);
  } }, "Play");
  let timer = 0, due = 0, kept = 0;
  const frame = () => {
    due = 0;
    for (const draw of view.draws) draw();
  };
  // The address follows when the scrubber rests: browsers take only so many changes of it.
  const keep = () => view.signal.aborted || history.replaceState(null, "", here({ step: view.step }));
  view.jump = (step) => {
    view.step = Math.min(Math.max(0, Math.round(step)), view.most);
    range.value = view.step;
    fill(shown, `step ${view.step} of ${view.most}`);
    range.setAttribute("aria-valuetext", shown.textContent);
    due ||= requestAnimationFrame(frame);
    clearTimeout(kept);
    kept = setTimeout(keep, 300);
  };
  const play = (on) => {
    clearTimeout(timer);
    timer = on && setTimeout(advance, 1000 / speed);
    fill(button, on ? "Pause" : "Play");
  };
  const advance = () => {
    view.jump(view.step + 1);
    play(view.step < view.most && !view.signal.aborted);
  };
  // At the end, the scrubber stays at the end while the run goes on.
  view.extend = () => {
    const end = Number.isNaN(view.step) || view.step === view.most;
    range.max = view.most = Math.max(0, ...view.runs.map((run) => run.last));
    view.jump(end ? view.most : view.step);
  };
  DARK.addEventListener("change", frame, { signal: view.signal });
  const speeds = [1, 5, 10, 25, 50, 100].map((each) => [each, `${each} steps a second`]);
  return el("div", { class: "scrubber" }, button, el("label", { for: "step" }, "Step"), range, shown,
    choice("Speed", "speed", speeds, speed, (value) => (speed = value)));
}

// The agents, those first that changed most from one measured opinion to the next.
function agents(run) {
  const { row: at, instrument, kind } = run.given;
  const own = { row: at, instrument: instrument && run.instrument?.id, kind: kind && run.kind };
  const size = ({ agent }) => run.changes[agent]?.size ?? -1;
  const row = ({ agent, role, model, assigned }) => {
    const { from, to: now, turn } = run.changes[agent] ?? {}, held = [...run.measured[agent]?.values() ?? []];
    const change = turn && `${signed(from)} to ${signed(now)} at step ${run.turns.get(turn).step}`;
    return [link(run.name(agent), within(run.run_id, ["agent", agent], { order: "change", ...own })),
      change ? turnLink(run.run_id, turn, change, own) : "none",
      ...[assigned, held[0]?.[0], held.at(-1)?.[0]].map((value) => signed(value)), role, model];
  };
  const columns = ["agent", "largest change", "assigned", "first", "last", "role", "model"];
  return numbers("Agents, largest change first", () => {
    const listed = run.agents.toSorted((one, other) => size(other) - size(one)).slice(0, MOST);
    return table(`${listed.length} of ${counted(run.agents.length, "agent")}`, columns, listed.map(row));
  }, true);
}
