// The figures of a run, drawn by hand: lines once to a layer of their own, and for each frame what moves.

import { counted, el, numbers, signed, table, whole } from "./parts.js";
import { layout } from "./opinions.js";

const LEFT = 62, RIGHT = 18, TOP = 14, BOTTOM = 24, ROW = 13;
// Conditions of turns that are marked below the lines, and how.
const MARKS = { refused: "×", empty: "○", truncated: "¬", skipped: "–" };
const WORDS = { refused: "refused", empty: "empty", truncated: "cut off", skipped: "skipped" };
// Most cells of a table of numbers, and most agents whose lines have their full width.
const CELLS = 2000, FULL = 40;
const AGAINST = "#d55e00";

function inks() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  return { ink: read("ink"), soft: read("soft"), line: read("line"), tie: read("tie"), card: read("card"), accent: read("accent") };
}

// A canvas with a caption and its numbers. `still` is drawn to a layer of its own, and again only when the run, the size
// or the colours have changed; `paint` is drawn over it for every frame, given what `still` has returned.
function figure(run, name, kind, { still = () => {}, paint, words, rows }) {
  const canvas = el("canvas", { role: "img" }), layer = el("canvas"), told = numbers(`Numbers: ${name.toLowerCase()}`, rows);
  const box = el("figure", { class: kind }, el("figcaption", {}, name), canvas, told.box);
  let drawn = "", plot = null;
  const draw = () => {
    const ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width) return;
    const ink = inks(), now = [width, height, ratio, ink.ink, run.version, run.metric?.name].join();
    if (drawn !== now) plot = still(fresh(layer, width, height, ratio), width, height, ink);
    drawn = now;
    const pen = fresh(canvas, width, height, ratio);
    if (layer.width === canvas.width) pen.drawImage(layer, 0, 0, width, height);
    paint(pen, width, height, ink, plot);
    canvas.setAttribute("aria-label", words());
    told.change();
  };
  new ResizeObserver(draw).observe(canvas);
  return { box, canvas, draw, plot: () => plot };
}

function fresh(canvas, width, height, ratio) {
  const size = [Math.round(width * ratio), Math.round(height * ratio)], pen = canvas.getContext("2d");
  if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "11px system-ui, sans-serif";
  return pen;
}

function path(pen, points, colour, width = 1, dash = []) {
  paths(pen, [points], colour, width, dash);
}

function paths(pen, lines, colour, width = 1, dash = []) {
  pen.setLineDash(dash);
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.beginPath();
  for (const points of lines) points.forEach(([x, y], place) => (place ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.stroke();
  pen.setLineDash([]);
}

function dot(pen, x, y, radius, fill, ring = null, width = 1) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fillStyle = fill;
  pen.fill();
  if (!ring) return;
  pen.strokeStyle = ring;
  pen.lineWidth = width;
  pen.stroke();
}

function print(pen, what, x, y, colour, align = "left") {
  pen.fillStyle = colour;
  pen.textAlign = align;
  pen.fillText(what, x, y);
}

// Round numbers between two ends, about as many as asked for.
function ticks(low, high, wanted, smallest = 0) {
  const raw = Math.max((high - low) / wanted, 1e-9), power = 10 ** Math.floor(Math.log10(raw));
  const apart = Math.max(smallest, power * [1, 2, 5, 10].find((each) => each * power >= raw));
  const first = Math.ceil(low / apart - 1e-9);
  return Array.from({ length: Math.floor(high / apart + 1e-9) - first + 1 }, (_, place) => (first + place) * apart);
}

// Where a step and a value stand, with the axes drawn; `below` keeps room under the axis.
function axes(pen, width, height, ink, { last, low, high, values, below = 0 }) {
  const floor = height - BOTTOM - below, room = width - LEFT - RIGHT;
  const x = (step) => LEFT + (room * step) / Math.max(last, 1);
  const y = (value) => floor - ((floor - TOP) * (value - low)) / (high - low || 1);
  for (const value of values) {
    path(pen, [[LEFT, y(value)], [width - RIGHT, y(value)]], ink.line);
    print(pen, `${value > 0 && low < 0 ? "+" : ""}${signed(value)}`, LEFT - 7, y(value) + 4, ink.soft, "right");
  }
  for (const step of ticks(0, last, room / 70, 1)) print(pen, whole(step), x(step), floor + 16, ink.soft, "center");
  return { x, y, floor, step: (at) => Math.round(((at - LEFT) / room) * last) };
}

function marked(run) {
  const found = Object.fromEntries(Object.keys(MARKS).map((condition) => [condition, []]));
  for (const turn of run.turns.values()) found[turn.condition]?.push(turn);
  return Object.entries(found).filter(([, turns]) => turns.length);
}

function drawLines(pen, width, height, run, ink, marks) {
  const values = run.instrument?.points.length ? run.instrument.points : ticks(run.low, run.high, 5);
  const pad = (run.high - run.low) / 8, ends = { low: run.low - pad, high: run.high + pad };
  const plot = axes(pen, width, height, ink, { last: run.span, ...ends, values, below: ROW * marks.length });
  for (const { step, label } of run.events ?? []) {
    path(pen, [[plot.x(step), TOP], [plot.x(step), plot.floor]], ink.soft, 1, [4, 3]);
    const left = plot.x(step) > width / 2;
    print(pen, label.slice(0, 36), plot.x(step) + (left ? -4 : 4), TOP - 3, ink.soft, left ? "right" : "left");
  }
  const thin = Math.min(1, FULL / Math.max(run.n, 1));
  run.values.forEach((row, agent) => drawAgent(pen, run, agent, plot, ink, thin));
  marks.forEach(([condition, turns], place) => {
    const at = plot.floor + BOTTOM + ROW * place + 6;
    print(pen, `${WORDS[condition]} ${turns.length}`, LEFT - 7, at, ink.soft, "right");
    for (const turn of turns) print(pen, MARKS[condition], plot.x(turn.step), at, ink.ink, "center");
  });
  return plot;
}

function drawAgent(pen, run, agent, { x, y }, ink, thin) {
  const row = run.values[agent], offset = run.offsets[agent], held = run.assigned[agent];
  const colour = Number.isNaN(held) ? ink.ink : run.colour(held);
  const known = row.findIndex((value) => !Number.isNaN(value));
  if (!Number.isNaN(held)) {
    const wait = known < 0 ? [] : [[x(known), y(held + offset)], [x(known), y(row[known] + offset)]];
    path(pen, [[x(0), y(held + offset)], ...wait], colour, 1, [1.5, 2.5]);
    dot(pen, x(0), y(held + offset), 3, ink.card, colour, 1.2);
  }
  if (known < 0) return;
  pen.globalAlpha = Math.max(0.9 * thin, 0.35);
  const points = [[x(known), y(row[known] + offset)]];
  for (let step = known + 1; step <= run.last; step++) {
    if (row[step] === row[step - 1]) continue;
    points.push([x(step), y(row[step - 1] + offset)], [x(step), y(row[step] + offset)]);
  }
  points.push([x(run.last), points.at(-1)[1]]);
  path(pen, points, colour, Math.max(1.5 * thin, 0.5));
  const size = Math.max(4 * thin, 1.2);
  pen.fillStyle = colour;
  for (const [step, [value]] of run.measured[agent]) {
    if (thin === 1) dot(pen, x(step), y(value + offset), size / 2, colour);
    else pen.fillRect(x(step) - size / 2, y(value + offset) - size / 2, size, size);
  }
  pen.globalAlpha = 1;
}

function summary(run, step) {
  const held = run.values.map((row) => row[step]).filter((value) => !Number.isNaN(value));
  if (!held.length) return `At step ${step} nobody is measured yet.`;
  const mean = held.reduce((sum, value) => sum + value, 0) / held.length;
  const ends = `${signed(Math.min(...held))} to ${signed(Math.max(...held))}`;
  return `At step ${step}, ${held.length} of ${run.n} agents are measured: mean ${signed(mean)}, from ${ends}.`;
}

export function trajectories(run, view) {
  const marks = () => marked(run).map(([condition, turns]) => `${turns.length} ${WORDS[condition]}`).join(", ");
  const made = figure(run, "Opinions over the steps", "paths", {
    words: () => `Opinions of ${run.n} agents over steps 0 to ${run.last}. ${summary(run, view.step)} ${marks()}`,
    rows: () => {
      const fit = Math.max(3, Math.floor(CELLS / Math.max(run.n, 1))), steps = run.steps(view.step, fit);
      const part = steps.length <= run.last ? `; steps ${steps[0]} to ${steps.at(-1)}, around the scrubber` : "";
      const cell = (agent, step) => signed(run.values[agent][step]) + (run.measured[agent].has(step) ? "*" : "");
      return table(`Opinion of each agent by step, * where measured${part}`, ["agent", "assigned", ...steps],
        run.values.map((_, agent) =>
          [run.name(agent), signed(run.assigned[agent]), ...steps.map((step) => cell(agent, step))]));
    },
    still: (pen, width, height, ink) => drawLines(pen, width, height, run, ink, marked(run)),
    paint: (pen, width, height, ink, plot) => {
      const at = plot.x(view.step);
      path(pen, [[at, TOP], [at, plot.floor]], ink.accent, 1.5);
      run.values.forEach((row, agent) => {
        const value = row[view.step];
        if (!Number.isNaN(value)) dot(pen, at, plot.y(value + run.offsets[agent]), 3, run.colour(value), ink.card);
      });
    },
  });
  made.canvas.addEventListener("click", (event) => view.jump(made.plot().step(event.offsetX)));
  return made;
}

export function distribution(run, view) {
  const range = (bin) => (run.bins === run.instrument?.points ? signed(bin.middle) : `about ${signed(bin.middle)}`);
  return figure(run, "Distribution at this step", "bars", {
    words: () => `Numbers of agents by opinion. ${summary(run, view.step)}`,
    rows: () => table(`Numbers of agents by opinion at step ${view.step}`, ["opinion", "measured", "assigned only"],
      run.distribution(view.step).map((bin) => [range(bin), bin.measured, bin.assigned])),
    paint: (pen, width, height, ink) => {
      const bins = run.distribution(view.step), most = run.most, apart = (width - LEFT - RIGHT) / bins.length;
      const floor = height - BOTTOM, high = (count) => ((floor - TOP) * count) / most;
      for (const count of ticks(0, most, 3, 1)) {
        path(pen, [[LEFT, floor - high(count)], [width - RIGHT, floor - high(count)]], ink.line);
        print(pen, count, LEFT - 7, floor - high(count) + 4, ink.soft, "right");
      }
      bins.forEach((bin, place) => {
        const x = LEFT + apart * (place + 0.15), wide = apart * 0.7, top = floor - high(bin.measured);
        pen.fillStyle = pen.strokeStyle = run.colour(bin.middle);
        pen.fillRect(x, top, wide, high(bin.measured));
        pen.setLineDash([3, 2]);
        if (bin.assigned) pen.strokeRect(x + 0.5, top - high(bin.assigned), wide - 1, high(bin.assigned));
        pen.setLineDash([]);
        const named = bins.length < 12 || !(place % 5);
        if (named) print(pen, signed(bin.middle, 1), x + wide / 2, floor + 16, ink.soft, "center");
      });
    },
  });
}

export function network(run, view) {
  let places = null, ties = [], known = "";
  const complete = () => !run.edges.length && !run.ties.length && run.about?.network === "complete";
  const hidden = () => complete() && run.n > 12;
  const refresh = () => {
    const now = `${run.generation} ${run.n} ${run.edges.length}`;
    if (known !== now) places = layout(run.n, run.network(0));
    known = now;
    ties = run.network(view.step);
    if (!complete() || hidden()) return;
    for (let one = 0; one < run.n; one++) for (let other = 0; other < one; other++) ties.push([other, one, 1]);
  };
  const told = () => (hidden() ? "Everybody can hear everybody: ties are not drawn" : counted(ties.length, "tie on record", "ties on record"));
  return figure(run, "Network at this step", "net", {
    words: () => `Network of ${run.n} agents, coloured by opinion. ${told()}. ${summary(run, view.step)}`,
    rows: () => table(`${told()}, step ${view.step}${ties.length > CELLS ? `; the first ${CELLS} ties` : ""}`, ["from", "to", "weight"],
      ties.slice(0, CELLS).map(([source, target, weight]) => [run.name(source), run.name(target), signed(weight)])),
    paint: (pen, width, height, ink) => {
      refresh();
      const room = Math.min(width, height) / 2 - 16, size = Math.max(2, Math.min(9, 36 / Math.sqrt(Math.max(run.n, 1))));
      const spots = places.map(([x, y]) => [width / 2 + room * x, height / 2 + room * y]);
      const lines = (kept) => ties.filter(kept).map(([source, target]) => [spots[source], spots[target]]);
      pen.globalAlpha = ties.length > 2000 ? 0.4 : 1;
      paths(pen, lines((tie) => tie[2] >= 0), ink.tie);
      paths(pen, lines((tie) => tie[2] < 0), AGAINST, 1, [4, 3]);
      if (run.directed) paths(pen, lines(() => true).map((line) => head(line, size)), ink.soft);
      pen.globalAlpha = 1;
      spots.forEach(([x, y], agent) => {
        const value = run.values[agent][view.step], held = run.assigned[agent], none = Number.isNaN(held);
        if (!Number.isNaN(value)) dot(pen, x, y, size, run.colour(value), ink.soft, 0.6);
        else dot(pen, x, y, size, ink.card, none ? ink.soft : run.colour(held), none ? 1 : 2.4);
      });
      if (!ties.length) print(pen, told(), width / 2, height / 2, ink.soft, "center");
    },
  });
}

// The head of an arrow, at the rim of the agent that hears.
function head([[x, y], [u, v]], size) {
  const far = Math.hypot(u - x, v - y) || 1, a = (u - x) / far, b = (v - y) / far, tip = [u - a * size, v - b * size];
  return [[tip[0] - 5 * a - 3 * b, tip[1] - 5 * b + 3 * a], tip, [tip[0] - 5 * a + 3 * b, tip[1] - 5 * b - 3 * a]];
}

export function metric(run, view) {
  const values = () => run.metric?.values ?? [];
  return figure(run, "Metric by step", "metric", {
    words: () => `${run.metric?.name ?? "No metric"} by step: ${signed(values()[view.step], 3)} at step ${view.step}.`,
    rows: () => table(`${run.metric?.name ?? "metric"} by step`, ["step", "value"],
      values().map((value, step) => [step, signed(value, 4)])),
    still: (pen, width, height, ink) => {
      const known = values().filter((value) => value !== null);
      if (!known.length) return print(pen, "no metric can be computed yet", LEFT, height / 2, ink.soft);
      const [low, high] = known.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [0, 0]);
      const top = high > low ? high : 1, marks = ticks(low, top, 3);
      const plot = axes(pen, width, height, ink, { last: run.span, low, high: top, values: marks });
      path(pen, values().flatMap((value, step) => (value === null ? [] : [[plot.x(step), plot.y(value)]])), ink.accent, 1.6);
      return plot;
    },
    paint: (pen, width, height, ink, plot) => {
      if (!plot) return;
      const at = plot.x(view.step), value = values()[view.step];
      path(pen, [[at, TOP], [at, plot.floor]], ink.accent, 1);
      if (value != null) dot(pen, at, plot.y(value), 3.5, ink.accent, ink.card);
    },
  });
}
