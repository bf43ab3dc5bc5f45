// A run: its figures under one scrubber, live, alone or beside another of its block, and its agents.

import { ask, follow, record } from "./source.js";
import { choice, counted, el, fill, go, head, link, numbers, say, signed, table, terms, titled, to } from "./parts.js";
import { Run } from "./opinions.js";
import { distribution, metric, network, trajectories } from "./figures.js";

const FEW = 50;
const ABOUT = [["Condition", "cell"], ["Claim", "claim"], ["Question", "question"], ["Task", "task"], ["Model", "model"],
  ["Interaction", "interaction"], ["Network", "network"], ["Replicate", "replicate"], ["Agents", "n_agents"],
  ["Steps", "steps"], ["Validation", "validation"]];

export async function runView(place, [id], given, signal) {
  const view = { step: Number(given.step ?? NaN), draw: [] };
  const runs = await Promise.all([id, given.with].filter(Boolean).map((each) => load(each, given, signal)));
  const control = scrubber(view, runs, given, signal), [run] = runs, beside = runs.length > 1;
  const here = (more) => go(["run", id], { ...given, step: view.step, ...more }), { about } = run;
  head(runs.map(titled).join(" and "), [...new Set(runs.map((each) => each.about?.stamp))].filter(Boolean).join(" + "), run.state);
  const instruments = (run.instruments ?? []).map((each) => [each.id, `${each.variable}, ${each.classifier}`]);
  const others = (run.siblings ?? []).map((each) => [each.run_id, `run ${each.row}: ${each.cell}`]);
  const { experiment_id: experiment, design } = about ?? {};
  fill(place,
    el("nav", { class: "ways", "aria-label": "This run" },
      !record && about && [link(about.experiment, ["experiment", experiment], { design }), link("search", ["search"], { experiment, design })],
      link("dialogue", ["run", id, "dialogue"])),
    control.box,
    el("div", { class: "choices" },
      instruments.length > 1 && choice("Instrument", instruments, run.instrument.id, (value) => here({ instrument: value, kind: "" })),
      run.kinds.length > 1 && choice("Coded from", run.kinds.map((kind) => [kind, kind]), run.kind, (kind) => here({ kind })),
      others.length > 0 && !record && choice("Beside it", [["", "no other run"], ...others], given.with, (value) => here({ with: value }))),
    el("div", { class: beside ? "pair" : "" }, runs.map((each) => panel(each, view, given, beside, signal, control.extend))));
  control.extend(true);
}

async function load(id, given, signal) {
  return new Run(await ask(`runs/${id}`, {}, signal)).refresh(given);
}

// One run's figures, which follow what is new.
function panel(run, view, given, beside, signal, extend) {
  const state = el("span", { class: "state", dir: "auto" }), facts = el("div"), metrics = el("div", { class: "choices" });
  const made = [trajectories, network, metric, distribution].map((make) => make(run, view)), cast = agents(run);
  view.draw.push(...made.map((each) => each.draw));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => made.forEach((each) => each.draw()), { signal });
  const told = () => {
    state.textContent = [run.state, run.error].filter(Boolean).join(": ");
    fill(facts, described(run));
    cast.change();
    measure(run, given, metrics, made[2], signal);
  };
  told();
  watch(run, given, signal, () => (told(), extend()));
  const key = "Rings, dotted lines and hollow bars are assigned opinions, which nobody measured. A line has the colour of the " +
    "opinion its agent was assigned: red below the middle of the scale, grey at it, blue above.";
  made[2].canvas.before(metrics);
  return el("section", { class: beside ? "" : "solo" }, el("h2", { dir: "auto" }, beside ? titled(run) : "Opinions", " ", state), facts,
    made.map((each) => each.box), el("p", { class: "small" }, key), cast.box);
}

function described({ about, instrument, kind, events }) {
  const points = instrument?.points.map((point, place) => `${signed(point)} ${instrument.labels[place] ?? ""}`).join(", ");
  const happened = events.map((event) => `${event.label} at step ${event.step}`).join("; ");
  return about && [
    about.notices.map((notice) => el("p", { class: "problem", dir: "auto" }, notice)),
    terms([...ABOUT.map(([words, name]) => [words, about[name]]), ["Events", happened], ["Scale", points],
      ["Opinions", instrument ? `${instrument.variable} by ${instrument.classifier}, from ${kind}` : "not measured"]])];
}

// The metric that is chosen, by step; asked for again when there is more of the run.
async function measure(run, given, place, shown, signal) {
  if (!run.instrument) return;
  const number = (run.asked = (run.asked ?? 0) + 1), name = run.metricName ?? given.metric ?? "bias";
  try {
    const asked = { instrument: run.instrument.id, kind: run.kind, name };
    const found = await ask(`runs/${run.run_id}/metrics`, asked, signal);
    if (run.asked !== number) return;
    const choose = (value) => {
      run.metricName = value;
      measure(run, given, place, shown, signal);
    };
    run.metric = found;
    fill(place, choice("Metric", found.names.map((each) => [each, each]), found.name, choose), el("span", { class: "small" }, found.meaning));
    shown.draw();
  } catch (problem) {
    if (!signal.aborted) say(problem.message);
  }
}

// Ask for what is new whenever something has changed, one question at a time.
function watch(run, given, signal, changed) {
  let asking = false, more = false;
  const look = async () => {
    more = true;
    while (more && !asking && !signal.aborted) {
      asking = !(more = false);
      try {
        const anew = run.take(await ask(`runs/${run.run_id}`, { since: `${run.generation}.${run.seq}` }, signal));
        run.refresh(given);
        changed();
        if (anew) say("This run was begun anew.");
      } catch (problem) {
        if (!signal.aborted) say(problem.message);
      }
      asking = false;
    }
  };
  follow(run.run_id, `${run.generation}.${run.seq}`, look, say, signal);
}

function scrubber(view, runs, given, signal) {
  const shown = el("output", { for: "step" }), most = () => Math.max(0, ...runs.map((run) => run.last));
  const range = el("input", { type: "range", id: "step", min: 0, step: 1, input: () => view.jump(Number(range.value)) });
  const button = el("button", { type: "button", click: () => play(!timer) }, "Play");
  let timer = 0, speed = 10, due = 0, kept = 0;
  // The address follows when the scrubber rests: browsers take only so many changes of it.
  const keep = () => signal.aborted || history.replaceState(null, "", to(["run", runs[0].run_id], { ...given, step: view.step }));
  const frame = () => {
    due = 0;
    for (const draw of view.draw) draw();
  };
  view.jump = (step) => {
    view.step = Math.min(Math.max(0, step), most());
    range.value = view.step;
    shown.textContent = `step ${view.step} of ${most()}`;
    range.setAttribute("aria-valuetext", shown.textContent);
    due ||= requestAnimationFrame(frame);
    clearTimeout(kept);
    kept = setTimeout(keep, 300);
  };
  const play = (on) => {
    clearInterval(timer);
    timer = on && setInterval(advance, 1000 / speed);
    button.textContent = on ? "Pause" : "Play";
    if (on && view.step >= most()) view.jump(0);
  };
  const advance = () => (view.step < most() && !signal.aborted ? view.jump(view.step + 1) : play(false));
  // At the end, the scrubber stays at the end while the run goes on.
  const extend = (first) => {
    const end = Number.isNaN(view.step) || (!first && view.step >= Number(range.max));
    range.max = most();
    view.jump(end ? most() : view.step);
  };
  const speeds = [1, 5, 10, 25, 50, 100].map((each) => [each, `${each} steps a second`]);
  const box = el("div", { class: "scrubber" }, button, el("label", { for: "step" }, "Step"), range, shown,
    choice("Speed", speeds, speed, (value) => (speed = Number(value), timer && play(true))));
  return { box, extend };
}

// The agents, those first that changed most from one measured opinion to the next.
function agents(run) {
  const id = run.run_id, size = ({ agent }) => run.changes[agent]?.size ?? -1;
  const row = ({ agent, name, role, model, assigned }) => {
    const found = run.changes[agent], held = [...(run.values[agent] ?? [])].filter((value) => !Number.isNaN(value));
    const words = found?.size > 0 && `${signed(found.from)} to ${signed(found.to)} at step ${found.step}`;
    return [link(name || `Agent ${agent}`, ["run", id, "agent", agent], { order: "change" }),
      words ? link(words, ["run", id, "turn", found.turn]) : "none", signed(assigned), signed(held[0]), signed(held.at(-1)), role, model];
  };
  let most = FEW;
  const box = numbers("Agents, largest change first", () => {
    const listed = run.agents.toSorted((one, other) => size(other) - size(one));
    const more = el("button", { type: "button", click: () => (most = Infinity, box.change()) }, "Show all");
    return el("div", {}, table(counted(listed.length, "agent"), ["agent", "largest change", "assigned", "first", "last", "role", "model"],
      listed.slice(0, most).map(row)), listed.length > most && more);
  }, true);
  return box;
}
