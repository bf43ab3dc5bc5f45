// The experiments of a store, and one of them as a grid of cells whose squares lead to its runs.

import { ask, record } from "./source.js";
import { choice, counted, duration, el, fill, framed, go, head, link, say, signed, text, to, whole } from "./parts.js";
import { shading } from "./opinions.js";

const LOOK_MS = 1500;
const GLYPHS = { incomplete: "×", withdrawn: "–", "under way": "…", "cut off": "!", trial: "t" };
const KEY = "Each square is a run: filled when complete, … under way, × incomplete, ! cut off, – withdrawn, t trial.";

// Draw again and again, never two at a time, until the signal ends it.
async function repeatedly(look, signal) {
  await look();
  const again = () => look().then(() => say(""), (problem) => signal.aborted || say(problem.message)).then(wait);
  const wait = () => signal.aborted || setTimeout(again, LOOK_MS);
  wait();
}

function paid([name, [used, limit]]) {
  const figure = (number) => number.toLocaleString("en", { maximumFractionDigits: name === "money" ? 4 : 0 });
  if (limit === null) return used ? `${name} ${figure(used)}` : "";
  return `${name} ${figure(used)} of at most ${figure(limit)}, ${figure(Math.max(0, limit - used))} left`;
}

function progress(each) {
  const states = Object.entries(each.counts).filter(([, runs]) => runs).map(([state, runs]) => `${whole(runs)} ${state}`);
  const rate = (each.rate ? `, ${signed(each.rate, 1)} a second` : "") + (each.left_s ? `, ${duration(each.left_s)} left` : "");
  const spent = Object.entries(each.paid).map(paid).filter(Boolean).join("; ");
  return [
    el("p", {}, states.join(", ") || (each.swept ? "a sweep of classic models" : "no runs yet")),
    each.expected > 0 && el("p", {},
      el("progress", { max: each.expected, value: each.calls, "aria-label": `Calls of ${each.name}` }),
      ` ${whole(each.calls)} of ${whole(each.expected)} calls${rate}`),
    spent && el("p", { class: "small" }, `Paid: ${spent}`)];
}

export async function experimentsView(place, _, given, signal) {
  if (record) return go(["run", record.run.run_id]);
  await repeatedly(async () => {
    const { store, experiments } = await ask("experiments", {}, signal);
    head("Experiments", [...new Set(experiments.map((each) => each.stamp).filter(Boolean))].join(" + "));
    fill(place, text(store, "small"), !experiments.length && el("p", {}, "No experiment is on record yet."),
      experiments.map((each) => el("article", { class: "card" },
        el("h2", {}, link(each.name, ["experiment", each.id])), progress(each), el("p", { class: "small" }, each.stamp))));
  }, signal);
}

export async function experimentView(place, [id], given, signal) {
  const state = el("section", { class: "card" }), ways = el("div", { class: "choices" });
  const grid = el("div"), legend = el("p", { class: "small" });
  let laid = "", paint = null, colours = null;
  fill(place, state, ways, legend, grid);
  await repeatedly(async () => {
    const found = await ask(`experiments/${id}`, { design: given.design }, signal);
    const { axes, points, runs, doing, reasons, over, last_reply_s: last } = found;
    head(found.name, found.stamp);
    fill(state, progress(found), doing.map((each) => text(each, "small", "p")),
      !over && last != null && el("p", { class: "small" }, `last reply ${duration(last)} ago`),
      reasons.map((each) => text(`${counted(each.runs, "run")}: ${each.error}`, "problem", "p")));
    const now = JSON.stringify([axes, points, runs.map((run) => [run.row, run.run_id])]);
    // What the keyboard may stand on stays, unless there are other cells or runs.
    if (laid !== now) {
      fill(ways, chosen(id, found, given));
      const [box, painter] = (points ? pointGrid : runGrid)(found, given, legend);
      fill(grid, box);
      paint = painter;
    }
    laid = now;
    paint(found, colours);
    if (given.colour && !points) colours = await ask(`experiments/${id}/colours`, { design: given.design, metric: given.colour }, signal);
    paint(found, colours);
  }, signal);
}

// What can be chosen for a grid.
function chosen(id, found, given) {
  const here = (name) => (value) => go(["experiment", id], { ...given, [name]: value });
  const [first, second] = axesOf(found, given), names = found.axes.map(({ name }) => [name, name]);
  const metrics = found.metrics.map(({ name }) => [name, name]);
  return [
    found.designs.length > 1 && choice("Design", found.designs.map((each) => [each, each]), found.design, here("design")),
    names.length > 1 && choice("Columns", names, first.name, here("columns")),
    names.length > 1 && choice("Rows", names.filter(([name]) => name !== first.name), second.name, here("rows")),
    choice("Colour", found.points ? metrics : [["", "state"], ...metrics], given.colour, here("colour")),
    !found.points && link("search the texts", ["search"], { experiment: id, design: found.design })];
}

// The axis of the columns, that of the rows, and the others, which are nested in the rows.
function axesOf({ axes }, { columns, rows }) {
  const first = axes.find((axis) => axis.name === columns) ?? axes.find((axis) => axis.name !== rows);
  const second = axes.find((axis) => axis.name === rows && axis !== first) ?? axes.find((axis) => axis !== first);
  return [first, second, ...axes.filter((axis) => axis !== first && axis !== second)].filter(Boolean);
}

// A table of cells: `show` makes what stands in one from the items that belong there.
function cells(caption, found, given, items, show) {
  const [first, ...nested] = axesOf(found, given), columns = first?.levels ?? [""];
  const label = (name, scope) => el("th", { scope, dir: "auto" }, name), last = (name) => name.split(".").at(-1);
  const place = (axis, item) => Math.max(0, axis.levels.indexOf(item.axes[axis.name]));
  const rank = (item) => nested.reduce((so, axis) => so * axis.levels.length + place(axis, item), 0);
  const rows = [...Map.groupBy(items, rank)].sort(([one], [other]) => one - other).map(([, own]) => el("tr", {},
    nested.map((axis) => label(axis.levels[place(axis, own[0])], "row")),
    columns.map((_, column) => el("td", {}, show(own.filter((item) => !first || place(first, item) === column))))));
  return framed(caption, el("table", {}, el("caption", {}, caption, first && ` Columns: ${first.name}.`),
    el("thead", {}, el("tr", {}, nested.map((axis) => label(last(axis.name), "col")), columns.map((level) => label(level || "runs", "col")))),
    el("tbody", {}, rows)));
}

function runGrid(found, given, legend) {
  const squares = new Map(), means = [];
  const box = cells("Runs by condition.", found, given, found.runs, (runs) => {
    const mean = el("span", { class: "small" });
    means.push([mean, runs]);
    for (const run of runs) squares.set(run.row, el("a", { href: to(["run", run.run_id]) }));
    return [el("div", { class: "squares" }, runs.map((run) => squares.get(run.row))), mean];
  });
  const paint = ({ runs, metrics }, colours) => {
    const shade = colours && shading(colours.low, colours.high), value = (run) => colours?.values[run.row] ?? null;
    for (const run of runs) {
      const square = squares.get(run.row), known = value(run);
      const words = `run ${run.row}, ${run.cell}, replicate ${run.replicate}, ${run.state}, ${run.evidence || "not begun"}`;
      square.className = `square ${colours && run.state === "complete" ? "" : run.state.replace(" ", "-")}`;
      square.style.background = known === null ? "" : shade.colour(known);
      square.textContent = GLYPHS[run.state] ?? "";
      square.title = words + (colours ? `: ${colours.metric} ${signed(known, 3)}` : "");
      square.setAttribute("aria-label", square.title);
    }
    for (const [mean, own] of means) {
      const known = own.map(value).filter((each) => each !== null);
      mean.textContent = known.length > 1 ? `mean ${signed(known.reduce((sum, each) => sum + each, 0) / known.length)}` : "";
    }
    if (colours) explain(legend, shade, colours.metric, metrics, colours.left);
    else legend.textContent = KEY;
  };
  return [box, paint];
}

function pointGrid(found, given, legend) {
  const name = (found.metrics.find((each) => each.name === given.colour) ?? found.metrics[0])?.name;
  const known = found.points.map((point) => point.measures[name]).filter((value) => value != null);
  const shade = shading(Math.min(...known), Math.max(...known));
  const box = cells(`Means of ${name} over replicates.`, found, given, found.points, (points) => points.map((point) => {
    const value = point.measures[name], swatch = el("span", { class: "square swatch" });
    swatch.style.background = value == null ? "" : shade.colour(value);
    return el("span", { title: `${counted(point.runs, "run")}, ${point.failed} failed` }, swatch, signed(value, 3));
  }));
  return [box, () => explain(legend, shade, name, found.metrics)];
}

function explain(legend, shade, name, metrics, left = 0) {
  const bar = el("span", { class: "bar" }), meaning = metrics.find((each) => each.name === name)?.meaning;
  bar.style.background = `linear-gradient(to right, ${shade.anchors.map((each) => `rgb(${each.join(" ")})`).join(", ")})`;
  fill(legend, `${name}: ${signed(shade.from)} `, bar, ` ${signed(shade.to)}`, left > 0 && `; ${counted(left, "run")} to come`,
    meaning && `. ${meaning}`);
}
