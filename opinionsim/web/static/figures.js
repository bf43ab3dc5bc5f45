// The figures of a run, drawn by hand: lines once to a layer of their own, and for each frame what moves.

import { el, numbers, signed, table, whole } from "./parts.js";
import { layout } from "./opinions.js";

const LEFT = 62, RIGHT = 12, TOP = 14, BOTTOM = 24, ROW = 13;
// Conditions of turns that are marked below the lines, and how.
const MARKS = { refused: "×", empty: "○", truncated: "¬", skipped: "–" };
const WORDS = { refused: "refused", empty: "empty", truncated: "cut off", skipped: "skipped" };
// Most cells of a table of numbers, and most agents whose lines have their full width.
const CELLS = 2000, FULL = 40;

function inks() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  return { ink: read("ink"), soft: read("soft"), line: read("line"), tie: read("tie"), card: read("card"), accent: read("accent") };
}

function figure(name, kind, { paint, words, rows }) {
  const canvas = el("canvas", { role: "img" }), told = numbers(`Numbers: ${name.toLowerCase()}`, rows);
  const box = el("figure", { class: kind }, el("figcaption", {}, name), canvas, told.box);
  const draw = () => {
    const ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width) return;
    const size = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "11px system-ui, sans-serif";
    paint(pen, width, height, inks(), ratio);
    canvas.setAttribute("aria-label", words());
    told.change();
  };
  new ResizeObserver(draw).observe(canvas);
  return { box, canvas, draw };
}

function path(pen, points, colour, width = 1, dash = []) {
  pen.setLineDash(dash);
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.beginPath();
  points.forEach(([x, y], place) => (place ? pen.lineTo(x, y) : pen.moveTo(x, y)));
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

// -- opinions of all agents over the steps -------------------------------------------------------------------

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
  let layer = null, drawn = "", plot = null;
  const marks = () => marked(run).map(([condition, turns]) => `${turns.length} ${WORDS[condition]}`).join(", ");
  const made = figure("Opinions over the steps", "paths", {
    words: () => `Opinions of ${run.n} agents over steps 0 to ${run.last}. ${summary(run, view.step)} ${marks()}`,
    rows: () => {
      const fit = Math.max(3, Math.floor(CELLS / Math.max(run.n, 1))), from = Math.max(0, view.step - (fit >> 1));
      const steps = Array.from({ length: Math.min(fit, run.last + 1) }, (_, place) =>
        place + Math.max(0, Math.min(from, run.last + 1 - fit)));
      const part = steps.length <= run.last ? `; steps ${steps[0]} to ${steps.at(-1)}, around the scrubber` : "";
      const cell = (agent, step) => signed(run.values[agent][step]) + (run.measured[agent].has(step) ? "*" : "");
      return table(`Opinion of each agent by step, * where measured${part}`, ["agent", "assigned", ...steps],
        run.values.map((_, agent) => [run.name(agent), signed(run.assigned[agent]), ...steps.map((step) => cell(agent, step))]));
    },
    paint: (pen, width, height, ink, ratio) => {
      const now = [width, height, ratio, ink.ink, run.version].join();
      if (drawn !== now) {
        layer = el("canvas", { width: Math.round(width * ratio), height: Math.round(height * ratio) });
        const own = layer.getContext("2d");
        own.scale(ratio, ratio);
        own.font = pen.font;
        plot = drawLines(own, width, height, run, ink, marked(run));
        drawn = now;
      }
      pen.drawImage(layer, 0, 0, width, height);
      const at = plot.x(Math.min(view.step, run.span));
      path(pen, [[at, TOP], [at, plot.floor]], ink.accent, 1.5);
      run.values.forEach((row, agent) => {
        const value = row[view.step];
        if (!Number.isNaN(value)) dot(pen, at, plot.y(value + run.offsets[agent]), 3, run.colour(value), ink.card);
      });
    },
  });
  made.canvas.addEventListener("click", (event) => view.jump(plot.step(event.offsetX)));
  return made;
}

// -- what moves with the scrubber ----------------------------------------------------------------------------

export function distribution(run, view) {
  const range = (bin) => (run.bins === run.instrument?.points ? signed(bin.middle) : `about ${signed(bin.middle)}`);
  return figure("Distribution at this step", "bars", {
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
  const refresh = () => {
    const now = `${run.generation} ${run.n} ${run.edges.length}`;
    if (known !== now) places = layout(run.n, run.network(0));
    known = now;
    ties = run.network(view.step);
    if (!complete() || run.n > 12) return;
    for (let one = 0; one < run.n; one++) for (let other = 0; other < one; other++) ties.push([other, one, 1]);
  };
  const told = () => (complete() && run.n > 12 ? "Everybody can hear everybody: ties are not drawn." : `${ties.length} ties.`);
  const spot = (width, height) => {
    const room = Math.min(width, height) / 2 - 16;
    return ([x, y]) => [width / 2 + room * x, height / 2 + room * y];
  };
  return figure("Network at this step", "net", {
    words: () => `Network of ${run.n} agents, coloured by opinion. ${told()} ${summary(run, view.step)}`,
    rows: () => table(`${told()} Step ${view.step}${ties.length > CELLS ? `; the first ${CELLS} ties` : ""}`, ["from", "to", "weight"],
      ties.slice(0, CELLS).map(([source, target, weight]) => [run.name(source), run.name(target), signed(weight)])),
    paint: (pen, width, height, ink) => {
      refresh();
      const at = spot(width, height), size = Math.max(2, Math.min(9, 90 / Math.sqrt(Math.max(run.n, 1)) / 2.5));
      pen.globalAlpha = ties.length > 2000 ? 0.4 : 1;
      for (const [source, target, weight] of ties) {
        const [[x, y], [u, v]] = [at(places[source]), at(places[target])], far = Math.hypot(u - x, v - y) || 1;
        const colour = weight < 0 ? "#d55e00" : ink.tie;
        path(pen, [[x, y], [u, v]], colour, 1, weight < 0 ? [4, 3] : []);
        if (!run.directed) continue;
        const [a, b] = [(u - x) / far, (v - y) / far], [tx, ty] = [u - a * size, v - b * size];
        path(pen, [[tx - 5 * a - 3 * b, ty - 5 * b + 3 * a], [tx, ty], [tx - 5 * a + 3 * b, ty - 5 * b - 3 * a]], ink.soft);
      }
      pen.globalAlpha = 1;
      places.forEach((place, agent) => {
        const value = run.values[agent]?.[view.step], held = run.assigned[agent], [x, y] = at(place);
        if (!Number.isNaN(value)) dot(pen, x, y, size, run.colour(value), ink.soft, 0.6);
        else dot(pen, x, y, size, ink.card, Number.isNaN(held) ? ink.soft : run.colour(held), Number.isNaN(held) ? 1 : 2.4);
      });
      if (complete() && run.n > 12) print(pen, "everybody can hear everybody: ties not drawn", width / 2, height - 3, ink.soft, "center");
    },
  });
}

export function metric(run, view) {
  const values = () => run.metric?.values ?? [];
  return figure("Metric by step", "metric", {
    words: () => `${run.metric?.name ?? "No metric"} by step: ${signed(values()[view.step], 3)} at step ${view.step}.`,
    rows: () => table(`${run.metric?.name ?? "metric"} by step`, ["step", "value"],
      values().map((value, step) => [step, signed(value, 4)])),
    paint: (pen, width, height, ink) => {
      const known = values().filter((value) => value !== null);
      if (!known.length) return print(pen, "no metric can be computed yet", LEFT, height / 2, ink.soft);
      const ends = known.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [0, 0]);
      const [low, high] = ends[0] === ends[1] ? [0, 1] : ends;
      const plot = axes(pen, width, height, ink, { last: run.span, low, high, values: ticks(low, high, 3) });
      const points = values().flatMap((value, step) => (value === null ? [] : [[plot.x(step), plot.y(value)]]));
      path(pen, points, ink.accent, 1.6);
      const at = plot.x(view.step), value = values()[view.step];
      path(pen, [[at, TOP], [at, plot.floor]], ink.accent, 1);
      if (value != null) dot(pen, at, plot.y(value), 3.5, ink.accent, ink.card);
    },
  });
}
