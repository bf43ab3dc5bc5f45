// The figures of a run, drawn by hand: what stands still to one canvas, and over it, for each frame, what moves.

import { counted, el, fill, numbers, signed, table, whole } from "./parts.js";

const LEFT = 62, RIGHT = 18, TOP = 14, BOTTOM = 24, ROW = 13;
// Most cells of a table, most agents whose lines have their full width, and most points that are drawn for each frame.
const CELLS = 2000, FULL = 40, POINTS = 4e5;
const AGAINST = "#d55e00";
export const DARK = matchMedia("(prefers-color-scheme: dark)");

let ink = inks();
DARK.addEventListener("change", () => (ink = inks()));

function inks() {
  const style = getComputedStyle(document.documentElement);
  const names = ["ink", "soft", "line", "tie", "card", "accent"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// A figure: its caption tells what it shows, and its rows are its numbers, with their heads. What `still` draws stays
// until the run, the size, the colours or the ties change; `moving` is given what `still` has returned.
function figure(run, view, name, kind, { caption, rows, still, moving }) {
  const below = el("canvas"), above = el("canvas", { role: "img" });
  const told = numbers(`Numbers: ${name.toLowerCase()}`, () => table(caption(), ...rows()));
  let width = 0, height = 0, drawn = "", plot = null;
  const draw = () => {
    if (!width) return;
    const sharp = devicePixelRatio, changes = run.ties.filter(([step]) => step <= view.step).length;
    const now = [width, height, sharp, ink.ink, view.runs.map((each) => each.version), changes].join();
    if (drawn !== now) plot = still(pen(below, width, height, sharp), width, height);
    drawn = now;
    moving(pen(above, width, height, Math.min(sharp, Math.sqrt(POINTS / (width * height)))), plot);
    above.setAttribute("aria-label", caption());
    told.change();
  };
  new ResizeObserver(() => {
    [width, height] = [above.clientWidth, above.clientHeight];
    draw();
  }).observe(above);
  return { draw, box: framed(kind, name, el("div", { class: "plot" }, below, above), told.box) };
}

const framed = (kind, name, ...parts) => el("figure", { class: kind }, el("figcaption", {}, name), parts);

function pen(canvas, width, height, ratio) {
  const size = [Math.round(width * ratio), Math.round(height * ratio)], made = canvas.getContext("2d");
  if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
  made.setTransform(ratio, 0, 0, ratio, 0, 0);
  made.clearRect(0, 0, width, height);
  made.font = "11px system-ui, sans-serif";
  return made;
}

function lines(pen, listed, colour, width = 1, dash = []) {
  Object.assign(pen, { strokeStyle: colour, lineWidth: width }).setLineDash(dash);
  pen.beginPath();
  for (const points of listed) points.forEach(([x, y], place) => (place ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.stroke();
  pen.setLineDash([]);
}

function dot(pen, x, y, radius, fill, ring, width = 1) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  Object.assign(pen, { fillStyle: fill, strokeStyle: ring, lineWidth: width }).fill();
  pen.stroke();
}

function print(pen, what, x, y, align = "center", colour = ink.soft) {
  Object.assign(pen, { fillStyle: colour, textAlign: align }).fillText(what, x, y);
}

// Round numbers between two ends, about as many as asked for.
function ticks(low, high, wanted, smallest = 0) {
  const raw = Math.max((high - low) / wanted, 1e-9), power = 10 ** Math.floor(Math.log10(raw));
  const apart = Math.max(smallest, power * [1, 2, 5, 10].find((each) => each * power >= raw));
  const first = Math.ceil(low / apart - 1e-9);
  return Array.from({ length: Math.floor(high / apart + 1e-9) - first + 1 }, (_, place) => (first + place) * apart);
}

// Where a step and a value stand, with the axes drawn; `below` keeps room under the axis.
function axes(pen, width, height, last, low, high, values = ticks(low, high, 4), below = 0) {
  const floor = height - BOTTOM - below, room = width - LEFT - RIGHT;
  const x = (step) => LEFT + (room * step) / Math.max(last, 1);
  const y = (value) => floor - ((floor - TOP) * (value - low)) / (high - low || 1);
  for (const value of values) {
    lines(pen, [[[LEFT, y(value)], [width - RIGHT, y(value)]]], ink.line);
    print(pen, `${value > 0 && low < 0 ? "+" : ""}${signed(value)}`, LEFT - 7, y(value) + 4, "right");
  }
  for (const step of ticks(0, last, room / 70, 1)) print(pen, whole(step), x(step), floor + 16);
  const upright = (over, step, ...style) => lines(over, [[[x(step), TOP], [x(step), floor]]], ...style);
  return { x, y, floor, upright };
}

function summary(run, step) {
  const held = run.values.map((row) => row[step]).filter((value) => !Number.isNaN(value));
  if (!held.length) return run.scaled ? `At step ${step} nobody is measured yet.` : "";
  const told = `At step ${step}, ${held.length} of ${run.n} agents are measured`;
  if (run.few(step)) return `${told}, too few for a mean.`;
  const mean = held.reduce((sum, value) => sum + value, 0) / held.length;
  const ends = `${signed(Math.min(...held))} to ${signed(Math.max(...held))}`;
  return `${told}: mean ${signed(mean)}, from ${ends}.`;
}

export function trajectories(run, view) {
  // Steps whose numbers are told: as many as are handy, around the scrubber.
  const told = () => Array.from({ length: run.last + 1 }, (_, step) => step)
    .filter((step) => Math.abs(step - view.step) * run.n <= CELLS);
  const cell = (agent, step) => signed(run.values[agent][step]) + (run.measured[agent].has(step) ? "*" : "");
  const row = (agent) => [run.name(agent), signed(run.assigned[agent]), ...told().map((step) => cell(agent, step))];
  return figure(run, view, "Opinions over the steps", "paths", {
    caption: () => `Opinions of ${run.n} agents over steps 0 to ${run.last}, * where measured. ${
      summary(run, view.step)} ${run.marked}`,
    rows: () => [["agent", "assigned", ...told()], run.values.map((_, agent) => row(agent))],
    still: (pen, width, height) => drawRun(pen, width, height, run),
    moving: (pen, { x, y, upright }) => {
      upright(pen, view.step, ink.accent, 1.5);
      run.values.forEach((row, agent) => {
        const value = row[view.step];
        if (!Number.isNaN(value)) dot(pen, x(view.step), y(value + offset(run, agent)), 3, run.colour(value), ink.card);
      });
    },
  });
}

const offset = (run, agent) => run.apart * (agent - (run.n - 1) / 2);

function drawRun(pen, width, height, run) {
  const values = run.instrument?.points.length ? run.instrument.points : ticks(run.low, run.high, 5);
  const pad = (run.high - run.low) / 8, below = ROW * run.marks.length;
  const plot = axes(pen, width, height, run.span, run.low - pad, run.high + pad, values, below), { x, floor } = plot;
  for (const { step } of run.events) plot.upright(pen, step, ink.soft, 1, [4, 3]);
  for (let agent = 0; agent < run.n; agent++) drawAgent(pen, run, agent, plot);
  run.marks.forEach(([words, turns], place) => {
    const at = floor + BOTTOM + ROW * place + 6;
    print(pen, `${words.slice(2)} ${turns.length}`, LEFT - 7, at, "right");
    for (const turn of turns) print(pen, words[0], x(turn.step), at, "center", ink.ink);
  });
  return plot;
}

// An agent's opinions, carried forward from one measured one to the next, and before them the one that was assigned.
function drawAgent(pen, run, agent, { x, y }) {
  const held = run.assigned[agent], thin = Math.min(1, FULL / run.n), size = Math.max(4 * thin, 1.2);
  const at = (step, value) => [x(step), y(value + offset(run, agent))];
  const own = [...run.measured[agent]].map(([step, [value]]) => [step, value]), last = own.at(-1);
  const colour = Number.isNaN(held) ? ink.ink : run.colour(held);
  if (!Number.isNaN(held)) {
    const [first, value] = own[0] ?? [0, held];
    lines(pen, [[at(0, held), at(first, held), at(first, value)]], colour, 1, [1.5, 2.5]);
    dot(pen, ...at(0, held), 3, ink.card, colour, 1.2);
  }
  if (!last) return;
  pen.globalAlpha = Math.max(0.9 * thin, 0.35);
  const path = own.flatMap(([step, value], place) => [at(step, own[Math.max(0, place - 1)][1]), at(step, value)]);
  lines(pen, [[...path, at(run.last, last[1])]], colour, Math.max(1.5 * thin, 0.5));
  pen.fillStyle = colour;
  for (const [u, v] of own.map((each) => at(...each))) pen.fillRect(u - size / 2, v - size / 2, size, size);
  pen.globalAlpha = 1;
}

export function metric(run, view) {
  const values = () => run.metric.values, name = `${run.metric.name} by step`;
  return figure(run, view, name, "metric", {
    caption: () => `${name}: ${signed(values()[view.step], 3)} at step ${view.step}. ${run.metric.meaning}`,
    rows: () => [["step", "value"], values().map((value, step) => [step, signed(value, 4)])],
    still: (pen, width, height) => {
      const known = [...values().entries()].filter(([, value]) => value !== null);
      const all = view.runs.flatMap((each) => each.metric.values); // runs side by side have one scale
      const [low, high] = [Math.min, Math.max].map((most) => most(0, ...all));
      const plot = axes(pen, width, height, run.span, low, high);
      lines(pen, [known.map(([step, value]) => [plot.x(step), plot.y(value)])], ink.accent, 1.6);
      return plot;
    },
    moving: (pen, { x, y, upright }) => {
      const value = values()[view.step];
      upright(pen, view.step, ink.accent);
      if (value != null) dot(pen, x(view.step), y(value), 3.5, ink.accent, ink.card);
    },
  });
}

// Numbers of agents, as a table whose bars are the figure.
export function distribution(run, view) {
  const place = el("div"), columns = ["opinion", "measured", "assigned only", ""];
  const bar = (count, middle, kind) => {
    const made = el("span", { class: `count ${kind}` });
    made.style.cssText = `--colour: ${run.colour(middle)}; width: ${(90 * count) / run.n}%`;
    return made;
  };
  const row = ({ middle, measured, assigned }) => [`${run.width ? "about " : ""}${signed(middle)}`, measured, assigned,
    el("div", {}, bar(measured, middle, "measured"), bar(assigned, middle, "assigned"))];
  const draw = () =>
    fill(place, table("Numbers of agents by opinion", columns, run.distribution(view.step).map(row)));
  return { draw, box: framed("bars", "Distribution at this step", place) };
}

export function network(run, view) {
  let ties = [];
  const all = () => !run.edges.length && !run.ties.length && run.about.network === "complete";
  const told = () => (all() ? "Everybody can hear everybody."
    : run.about.network || ties.length ? `${counted(ties.length, "tie on record", "ties on record")}${
      run.directed ? ", dark at the agent that hears" : ""}.` : "");
  return figure(run, view, "Network at this step", "net", {
    caption: () => `Network of ${run.n} agents${run.scaled ? ", coloured by opinion" : ""}. ${told()} ${
      summary(run, view.step)}`,
    rows: () => [["from", "to", "weight"], ties.slice(0, CELLS).map(([source, target, weight]) =>
      [run.name(source), run.name(target), signed(weight)])],
    still: (pen, width, height) => {
      ties = run.network(view.step);
      run.places ??= layout(run.n, ties);
      const room = Math.min(width, height) / 2 - 16, size = Math.max(2, Math.min(9, 36 / Math.sqrt(run.n)));
      const spots = run.places.map(([x, y]) => [width / 2 + room * x, height / 2 + room * y]);
      const drawn = (kept) => ties.filter(kept).map(([source, target]) => [spots[source], spots[target]]);
      pen.globalAlpha = ties.length > 2000 ? 0.4 : 1;
      lines(pen, drawn((tie) => tie[2] >= 0), ink.tie);
      lines(pen, drawn((tie) => tie[2] < 0), AGAINST, 1, [4, 3]);
      if (run.directed) lines(pen, drawn(() => true).map(([from, to]) => [middle(from, to), to]), ink.soft);
      pen.globalAlpha = 1;
      if (!ties.length) print(pen, told(), width / 2, height / 2);
      return { spots, size };
    },
    moving: (pen, { spots, size }) => spots.forEach(([x, y], agent) => {
      const value = run.values[agent][view.step], held = run.assigned[agent], none = Number.isNaN(held);
      if (!Number.isNaN(value)) dot(pen, x, y, size, run.colour(value), ink.soft, 0.6);
      else dot(pen, x, y, size, ink.card, none ? ink.soft : run.colour(held), none ? 1 : 2.4);
    }),
  });
}

const middle = ([x, y], [u, v]) => [(x + u) / 2, (y + v) / 2];

// Places of agents, within -1 to 1: a circle, from which springs pull them along the ties, the same way every time.
function layout(n, ties) {
  const places = Array.from({ length: n }, (_, agent) => (2 * Math.PI * agent) / n - Math.PI / 2)
    .map((angle) => [Math.cos(angle), Math.sin(angle)]);
  const rounds = n > 12 && ties.length ? Math.min(200, 3e6 / n ** 2) : 0, ideal = 2 / Math.sqrt(n);
  const tied = new Set(ties.flatMap(([one, other]) => [one * n + other, other * n + one]));
  for (let round = 0; round < rounds; round++) {
    places.forEach((place, one) => {
      const move = place.map((at) => -at);
      places.forEach((spot, other) => {
        const apart = place.map((at, axis) => at - spot[axis]), far = Math.hypot(...apart) || 1e-3;
        const force = (ideal / far) ** 2 - (tied.has(one * n + other) ? far / ideal : 0);
        apart.forEach((way, axis) => (move[axis] += way * force));
      });
      const short = Math.min(1, (0.2 * (1 - round / rounds)) / (Math.hypot(...move) || 1));
      move.forEach((way, axis) => (place[axis] += short * way));
    });
  }
  const reach = Math.max(...places.flat().map(Math.abs));
  return places.map((place) => place.map((at) => at / reach));
}
