// A run as the page holds it, the opinions that follow from its record, and their colours.

// Colours of the five published opinions, most negative first, as in the figures of the package.
const ANCHORS = [[230, 0, 0], [255, 128, 128], [153, 153, 153], [102, 194, 255], [0, 102, 255]];
const SHARES = [[207, 225, 234], [127, 176, 200], [52, 120, 155], [18, 60, 87]];
// Kinds of text that opinions are read from, in the order of preference where none is named.
const KINDS = ["report", "response", "speech", "post", "probe", "self-report", "opinion"];

// The colour at a place from 0 to 1 along a row of colours.
export function blend(place, anchors = ANCHORS) {
  const at = Math.min(Math.max(place, 0), 1) * (anchors.length - 1);
  const low = Math.min(Math.floor(at), anchors.length - 2);
  const mixed = anchors[low].map((part, channel) => Math.round(part + (at - low) * (anchors[low + 1][channel] - part)));
  return `rgb(${mixed.join(" ")})`;
}

// How a measure is coloured: red to blue around zero where it has both signs, else light to dark.
export function shading(low, high) {
  const both = low < 0 && high > 0;
  const [from, to] = both ? [-Math.max(-low, high), Math.max(-low, high)] : [low, high];
  const anchors = both ? ANCHORS : SHARES;
  return { from, to, anchors, colour: (value) => blend(to - from > 1e-9 ? (value - from) / (to - from) : 0.5, anchors) };
}

export class Run {
  constructor(answer) {
    this.take(answer);
  }

  // Take in an answer: everything, or what is new. Returns whether the run was begun anew.
  take(answer) {
    const anew = answer.generation !== this.generation;
    if (anew) Object.assign(this, { turns: new Map(), codes: [], ties: [], events: [], edges: [], agents: [] });
    for (const [name, value] of Object.entries(answer)) {
      if (value !== null && !["words", "turns", "opinions", "ties"].includes(name)) this[name] = value;
    }
    const { words, turns, opinions } = answer;
    turns.turn.forEach((turn, row) => this.turns.set(turn, {
      turn, step: turns.step[row], agent: turns.agent[row], act: words[turns.act[row]],
      kind: words[turns.kind[row]], condition: words[turns.condition[row]],
    }));
    opinions.turn.forEach((turn, row) => this.codes.push({
      turn, instrument: words[opinions.instrument[row]], value: opinions.value[row], about: opinions.about[row],
    }));
    this.ties.push(...answer.ties);
    return anew;
  }

  get n() {
    return this.about?.n_agents ?? this.agents.length;
  }

  name(agent) {
    return this.agents.find((each) => each.agent === agent)?.name || `Agent ${agent}`;
  }

  // The instrument and the kind of text that are shown: those named, else those of stance that come first.
  choose(instrument, kind) {
    const all = this.instruments ?? [];
    this.instrument = all.find((each) => each.id === instrument) ?? all.find((each) => each.stance) ?? all[0];
    const coded = new Set();
    for (const code of this.codes) if (code.instrument === this.instrument?.id) coded.add(this.turns.get(code.turn)?.kind);
    this.kinds = [...KINDS.filter((name) => coded.has(name)), ...[...coded].filter((name) => name && !KINDS.includes(name))];
    this.kind = this.kinds.includes(kind) ? kind : this.kinds[0] ?? "";
  }

  // Take up what is new, for the instrument and kind of text that the address names.
  refresh({ instrument, kind }) {
    this.choose(instrument, kind);
    this.derive();
    this.version = (this.version ?? 0) + 1;
    return this;
  }

  // Lay the measured opinions on a grid of agents and steps, and carry each forward. An assigned opinion is none.
  derive() {
    const n = this.n, found = [];
    let last = 0;
    for (const { step } of this.turns.values()) last = Math.max(last, step);
    for (const code of this.codes) {
      const turn = code.instrument === this.instrument?.id && code.about === null && this.turns.get(code.turn);
      if (turn && turn.kind === this.kind && turn.agent < n && code.value !== null) {
        if (turn.condition !== "truncated" || this.about.counts_cut_off) found.push([turn, code.value]);
      }
    }
    found.sort(([one], [other]) => one.turn - other.turn);
    this.span = Math.max(this.about?.steps ?? 0, last);
    this.last = this.state === "complete" ? this.span : last;
    this.measured = Array.from({ length: n }, () => new Map());
    for (const [turn, value] of found) this.measured[turn.agent].set(turn.step, [value, turn.turn]);
    this.values = this.measured.map((own) => {
      const row = new Float64Array(this.span + 1).fill(NaN);
      for (let step = 0, value = NaN; step <= this.span; step++) row[step] = value = own.get(step)?.[0] ?? value;
      return row;
    });
    this.assigned = Array.from({ length: n }, (_, agent) => this.agents.find((each) => each.agent === agent)?.assigned ?? NaN);
    this.range();
    const counts = Array.from({ length: this.span + 1 }, (_, step) => this.distribution(step));
    this.most = Math.max(1, ...counts.map((bins) => Math.max(...bins.map((bin) => bin.measured + bin.assigned))));
    this.changes = this.measured.map((own) => largest(own));
  }

  // The range of opinions, and how far apart equal ratings are drawn: exact numbers stand at their values.
  range() {
    const points = this.instrument?.points ?? [], n = this.n;
    const known = [...this.measured.flatMap((own) => [...own.values()].map(([value]) => value)), ...this.assigned];
    const held = known.filter((value) => !Number.isNaN(value));
    const most = held.reduce((so, value) => Math.max(so, Math.abs(value)), 0) || 1;
    [this.low, this.high] = points.length ? [points[0], points.at(-1)] : [-most, most];
    const rated = this.instrument?.classifier !== "exact" && held.every((value) => points.includes(value));
    const apart = rated ? Math.min(0.03, 0.7 / Math.max(n - 1, 1)) : 0;
    this.offsets = this.measured.map((_, agent) => apart * (agent - (n - 1) / 2));
    // Opinions at the points of the scale are counted there, others in twenty portions of the range.
    const width = (this.high - this.low) / 20;
    const bins = Array.from({ length: 20 }, (_, bin) => this.low + (bin + 0.5) * width);
    this.bins = held.every((value) => points.includes(value)) && points.length ? points : bins;
  }

  colour(value) {
    return blend((value - this.low) / (this.high - this.low || 1));
  }

  bin(value) {
    if (this.bins === this.instrument?.points) return this.bins.indexOf(value);
    return Math.min(19, Math.max(0, Math.floor((20 * (value - this.low)) / (this.high - this.low))));
  }

  // So many steps around one, as far as the run has come.
  steps(around, count) {
    const fit = Math.min(count, this.last + 1), from = Math.max(0, Math.min(around - (fit >> 1), this.last + 1 - fit));
    return Array.from({ length: fit }, (_, place) => from + place);
  }

  // Numbers of agents in each bin at a step: measured ones, and those that have an assigned opinion alone.
  distribution(step) {
    const found = this.bins.map((middle) => ({ middle, measured: 0, assigned: 0 }));
    this.values.forEach((row, agent) => {
      if (!Number.isNaN(row[step])) found[this.bin(row[step])].measured++;
      else if (!Number.isNaN(this.assigned[agent])) found[this.bin(this.assigned[agent])].assigned++;
    });
    return found;
  }

  // The ties at a step: those at the start, and every change up to then.
  network(step) {
    const key = (source, target) => (this.directed ? [source, target] : [source, target].sort((a, b) => a - b)).join(" ");
    const ties = new Map(this.edges.map((edge) => [key(edge[0], edge[1]), edge]));
    for (const [at, oldSource, oldTarget, source, target] of this.ties) {
      if (at > step) continue;
      const weight = ties.get(key(oldSource, oldTarget))?.[2] ?? 1;
      ties.delete(key(oldSource, oldTarget));
      ties.set(key(source, target), [source, target, weight]);
    }
    return [...ties.values()].filter(([source, target]) => source < this.n && target < this.n);
  }
}

// The largest change between two measured opinions of an agent that follow each other.
function largest(own) {
  let before = null, found = { size: -1, step: null };
  for (const [step, [value, turn]] of [...own].sort(([one], [other]) => one - other)) {
    const size = before === null ? -1 : Math.abs(value - before);
    if (size > found.size) found = { size, step, turn, from: before, to: value };
    before = value;
  }
  return found;
}

// Places of agents, within -1 to 1: a circle, or springs that are let loose the same way every time.
export function layout(n, ties) {
  const places = Array.from({ length: n }, (_, agent) => {
    const angle = (2 * Math.PI * agent) / Math.max(n, 1) - Math.PI / 2;
    return [n > 1 ? Math.cos(angle) : 0, n > 1 ? Math.sin(angle) : 0];
  });
  if (n <= 12 || !ties.length || n > 1000) return places;
  const ideal = 2 / Math.sqrt(n), rounds = Math.max(40, Math.min(200, 3e7 / n ** 2));
  for (let round = 0; round < rounds; round++) spring(places, ties, ideal, 0.2 * (1 - round / rounds));
  const most = Math.max(...places.flat().map(Math.abs), 1e-9);
  return places.map(([x, y]) => [x / most, y / most]);
}

function spring(places, ties, ideal, most) {
  const moves = places.map(([x, y]) => [-x, -y]);
  const push = (one, other, strength) => {
    const dx = places[one][0] - places[other][0], dy = places[one][1] - places[other][1];
    const far = Math.hypot(dx, dy) || 1e-3, force = strength(far) / far;
    for (const [each, way] of [[moves[one], force], [moves[other], -force]]) each[0] += dx * way, each[1] += dy * way;
  };
  for (let one = 0; one < places.length; one++) {
    for (let other = 0; other < one; other++) push(one, other, (far) => ideal ** 2 / far);
  }
  for (const [one, other] of ties) push(one, other, (far) => -(far ** 2) / ideal);
  places.forEach((place, agent) => {
    const far = Math.hypot(...moves[agent]) || 1e-9, kept = Math.min(far, most) / far;
    place[0] += moves[agent][0] * kept, place[1] += moves[agent][1] * kept;
  });
}
