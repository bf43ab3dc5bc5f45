// The experiments of a store, and one of them as a grid of cells whose squares lead to its runs.

import { ask } from "./source.js";
import { choice, choices, counted, el, fill, given, head, link, say, signed, small, table, text } from "./parts.js";
import { to, whole } from "./parts.js";
import { shading } from "./opinions.js";

const LOOK_MS = 1500;
const GLYPHS = { incomplete: "×", withdrawn: "–", "under way": "…", "cut off": "!", trial: "t" };
const KEY = "A square is a run: filled when complete, … under way, × incomplete, ! cut off, – withdrawn, t trial.";
const UNITS = "This study keeps no single runs: draw it with `opinionsim plot`.";

// Look now, and then again and again, never two at a time, until the signal ends it.
async function repeatedly(look, signal) {
  await look();
  const wait = () => signal.aborted || setTimeout(again, LOOK_MS);
  const again = () => look().then(() => say(""), (problem) => signal.aborted || say(problem.message)).then(wait);
  wait();
}

const duration = (seconds) => `${Math.floor(seconds / 3600)}:${new Date(1000 * seconds).toISOString().slice(14, 19)}`;

function progress({ name, counts, calls, expected, rate, left_s: left, paid, units, stamp }) {
  const states = Object.entries(counts).filter(([, runs]) => runs).map(([state, runs]) => `${whole(runs)} ${state}`);
  const spent = Object.entries(paid).map(([what, [used, limit]]) => (limit === null ? `${what} ${whole(used)}`
    : `${what} ${whole(used)} of at most ${whole(limit)}, ${whole(Math.max(0, limit - used))} left`));
  return [
    el("p", {}, states.join(", ") || "no runs yet"),
    expected > 0 && el("p", {},
      el("progress", { max: expected, value: calls, "aria-label": `Calls of ${name}` }),
      ` ${whole(calls)} of ${whole(expected)} calls`, rate && `, ${signed(rate, 1)} a second`,
      left && `, ${duration(left)} left`),
    small(units ? UNITS : `Paid: ${spent.join("; ")}`), small(stamp)];
}

export async function experimentsView(_, asked, signal) {
  const place = el("div");
  await repeatedly(async () => {
    const { store, experiments } = await ask("experiments", {}, signal);
    head("Experiments", experiments.map((each) => each.stamp));
    fill(place, small(store), !experiments.length && el("p", {}, "No experiment is on record yet."),
      experiments.map((each) => el("article", { class: "card" },
        el("h2", {}, link(each.name, to(["experiment", each.id]))), progress(each))));
  }, signal);
  return place;
}

export async function experimentView([id], { design, colour, columns: wanted }, signal) {
  const state = el("section", { class: "card" }), place = el("div"), path = `experiments/${id}`;
  const { designs, design: own, axes, metrics } = await ask(path, { design }, signal);
  const long = axes.toSorted((one, other) => other.levels.length - one.levels.length);
  const columns = axes.find(({ name }) => name === wanted) ?? long[1], rows = long.find((axis) => axis !== columns);
  let shown = "";
  await repeatedly(async () => {
    const found = await ask(path, { design }, signal);
    const colours = colour && await ask(`${path}/colours`, { design, metric: colour }, signal);
    const now = JSON.stringify([found.runs.map((run) => run.state), colours]);
    head(found.name, [found.stamp]);
    fill(state, progress(found), found.doing.map((each) => small(each)),
      !found.over && found.last_reply_s != null && small(`last reply ${duration(found.last_reply_s)} ago`),
      found.reasons.map((each) => text(`${counted(each.runs, "run")}: ${each.error}`, "problem", "p")));
    if (shown === now || found.units) return;
    shown = now;
    // The square under the keyboard keeps it.
    const at = document.activeElement?.getAttribute("href");
    fill(place, grid(found, rows, columns, colours));
    place.querySelector(`[href="${at}"]`)?.focus();
  }, signal);
  return [state, choices(choice("Design", "design", designs, own),
    choice("Columns", "columns", axes.map(({ name }) => name), columns?.name),
    choice("Colour", "colour", metrics.length > 0 ? [["", "state"], ...metrics.map(({ name }) => name)] : [], colour),
    link("search the texts", to(["search"], { experiment: id, design: own }))), place, outcome(id, own)];
}

// The figure of the outcome, drawn when it is opened.
function outcome(id, design) {
  const none = ({ target }) => target.replaceWith(small("There is nothing to draw here; `opinionsim plot` says why."));
  return el("details", { class: "card" }, el("summary", {}, "Outcome by condition, contrasts and change"),
    el("img", { class: "outcome", loading: "lazy", src: `/outcome/${encodeURIComponent(id)}?design=${design}`, error: none,
      alt: "The outcome of each condition, contrasts, and how agents changed" }));
}

// The runs of each condition as squares, in the order of the axes that are neither rows nor columns.
function grid({ axes, runs, metrics }, rows, columns, colours) {
  const shade = colours && shading(colours.low, colours.high);
  const cell = (row, column) => {
    const own = runs.filter((run) => run.axes[rows?.name] === row && run.axes[columns?.name] === column);
    const known = colours ? own.map((run) => colours.values[run.row]).filter((value) => value != null) : [];
    const lines = [...Map.groupBy(own, (run) => inside.map((name) => run.axes[name]).join(", "))];
    return [lines.map(([words, listed]) => el("div", { class: "levels" }, words && text(words, "small"),
      el("div", { class: "squares" }, listed.map((run) => square(run, colours, shade))))), known.length > 0
      && el("span", { class: "small" }, `mean ${signed(known.reduce((sum, each) => sum + each, 0) / known.length)}`)];
  };
  // An axis that is not there has one level, without a name, and so have the runs.
  const [down, across] = [rows, columns].map((axis) => axis?.levels ?? [undefined]);
  const inside = axes.map(({ name }) => name).filter((name) => ![rows?.name, columns?.name].includes(name));
  const named = { rows: rows?.name, columns: columns?.name, squares: inside.join(", ") };
  const caption = ["Runs by condition", ...given(named).map(([what, name]) => `${what}: ${name}`)].join("; ");
  return [el("p", { class: "small" }, colours ? legend(colours, shade, metrics) : KEY),
    table(caption, [rows?.name, ...across.map((column) => column ?? "runs")],
      down.map((row) => [row ?? "all", ...across.map((column) => cell(row, column))]))];
}

function square(run, colours, shade) {
  const value = colours && colours.values[run.row], { row, run: name, state, evidence } = run;
  const title = `run ${name}, ${state}, ${evidence || "not begun"}`
    + (colours ? `: ${colours.metric} ${signed(value, 3)}` : "");
  const kind = `square ${colours && state === "complete" ? "" : state.replace(" ", "-")}`;
  const made = link(GLYPHS[state], to(["run", run.run_id], { row }), { class: kind, title, "aria-label": title });
  if (value != null) made.style.background = shade.colour(value);
  return made;
}

function legend({ metric, left }, { from, to: most, anchors }, metrics) {
  const bar = el("span", { class: "bar" }), { meaning } = metrics.find(({ name }) => name === metric);
  bar.style.background = `linear-gradient(to right, ${anchors.map((each) => `rgb(${each.join(" ")})`).join(", ")})`;
  return [`${metric}: ${signed(from)} `, bar, ` ${signed(most)}. ${meaning}`,
    left > 0 && `; ${counted(left, "run")} to come`];
}
