// A run as the page holds it, the opinions that follow from its record, and their colours.

// Colours of the five published opinions, most negative first, as in the figures of the package.
const ANCHORS = [[230, 0, 0], [255, 128, 128], [153, 153, 153], [102, 194, 255], [0, 102, 255]];
// Marks of turns without an answer in figures, by status; others are marked with a dot.
const MARKS = { refused: "× refused", empty: "○ empty", truncated: "¬ cut off", skipped: "– skipped" };
const HEARD = ["answered", "silent"];
// Opinions that are not at the few points of a scale are counted in so many portions of the range.
const FEW = 11, PORTIONS = 10;

// The colour at a place from 0 to 1 along a row of colours.
function blend(place, anchors) {
  const at = Math.min(Math.max(place, 0), 1) * (anchors.length - 1);
  const low = Math.min(Math.floor(at), anchors.length - 2);
  const mixed = anchors[low].map((part, channel) => Math.round(part + (at - low) * (anchors[low + 1][channel] - part)));
  return `rgb(${mixed.join(" ")})`;
}

export class Run {
  constructor(answer, given) {
    this.given = given;
    this.version = 0;
    this.take(answer);
  }

  // Take in an answer: everything, or what is new. Returns whether the run was begun anew.
  take({ words, turns, opinions, ties, ...lasting }) {
    const anew = lasting.generation !== this.generation;
    if (anew) Object.assign(this, { turns: new Map(), codes: [], ties: [], places: null });
    for (const [name, value] of Object.entries(lasting)) if (value !== null) this[name] = value;
    turns.turn.forEach((turn, row) => this.turns.set(turn, {
      turn, step: turns.step[row], agent: turns.agent[row], act: words[turns.act[row]],
      kind: words[turns.kind[row]], status: words[turns.status[row]], signs: words[turns.signs[row]],
    }));
    opinions.turn.forEach((turn, row) => this.codes.push({
      turn: this.turns.get(turn), instrument: words[opinions.instrument[row]], value: opinions.value[row],
      about: opinions.about[row],
    }));
    this.ties.push(...ties);
    this.cast = new Map(this.agents.map((each) => [each.agent, each]));
    this.called = Map.groupBy(this.agents, (each) => each.name);
    this.n = this.about.n_agents;
    this.derive(this.chosen());
    this.version++;
    return anew;
  }

  // Agents of one name are told apart by their numbers.
  name(agent) {
    const name = this.cast.get(agent)?.name;
    return name ? `${name}${this.called.get(name).length > 1 ? ` (agent ${agent})` : ""}` : `Agent ${agent}`;
  }

  // The measurements that are shown: by the instrument and of the kind of text that the address names, else those of
  // stance that come first.
  chosen() {
    const { instruments, given } = this;
    this.instrument = instruments.find((each) => each.id === given.instrument)
      ?? instruments.find((each) => each.stance) ?? instruments[0];
    const own = this.codes.filter((code) => code.instrument === this.instrument?.id && code.about === null);
    const coded = new Set(own.map((code) => code.turn.kind));
    this.kinds = (this.instrument?.kinds ?? []).filter((kind) => coded.has(kind));
    this.kind = this.kinds.includes(given.kind) ? given.kind : this.kinds[0];
    return own.filter(({ turn, value }) => turn.kind === this.kind && turn.agent < this.n && value !== null
      && ![turn.status, ...turn.signs.split(" ")].some((each) => this.about.uncounted.includes(each)));
  }

  // Lay the measured opinions on a grid of agents and steps, and carry each forward. An assigned opinion is none.
  derive(found) {
    const agents = Array.from({ length: this.n }, (_, agent) => agent), turns = [...this.turns.values()];
    const last = turns.reduce((so, { step }) => Math.max(so, step), 0);
    this.span = Math.max(this.about.steps ?? 0, last);
    this.last = this.state === "complete" ? this.span : last;
    const lost = turns.map((turn) => turn.status).filter((name) => name && !HEARD.includes(name));
    this.marks = [...new Set([...Object.keys(MARKS), ...lost])]
      .map((name) => [MARKS[name] ?? `· ${name}`, turns.filter((turn) => turn.status === name)]);
    this.marks = [...this.marks, ["▾ events", this.events]].filter(([, marked]) => marked.length);
    this.marked = this.marks.map(([words, marked]) => `${marked.length} ${words.slice(2)}`).join(", ");
    this.measured = agents.map(() => new Map());
    for (const { turn, value } of found.sort((one, other) => one.turn.turn - other.turn.turn)) {
      this.measured[turn.agent].set(turn.step, [value, turn.turn]);
    }
    this.values = this.measured.map((own) => {
      const row = new Float64Array(this.span + 1);
      for (let step = 0, value = NaN; step <= this.span; step++) row[step] = value = own.get(step)?.[0] ?? value;
      return row;
    });
    const first = agents.map((agent) => Math.min(...turns
      .filter((turn) => turn.agent === agent && turn.kind === this.kind).map(({ step }) => step)));
    // Whether too few of the agents that had a turn by a step are measured for a number of all.
    this.few = (step) => this.values.filter((row) => !Number.isNaN(row[step])).length
      < this.about.least_measured * first.filter((begun) => begun <= step).length;
    this.assigned = agents.map((agent) => this.cast.get(agent)?.assigned ?? NaN);
    this.changes = this.measured.map(largest);
    this.range([...found.map(({ value }) => value), ...this.assigned.filter((value) => !Number.isNaN(value))]);
  }

  // The range of opinions, if there is any, where they are counted, and how far apart equal ratings are drawn: exact
  // numbers stand at their values.
  range(held) {
    const points = this.instrument?.points ?? [], rated = held.every((value) => points.includes(value));
    const most = held.reduce((so, value) => Math.max(so, Math.abs(value)), 0) || 1;
    [this.low, this.high] = points.length ? [points[0], points.at(-1)] : [-most, most];
    this.width = rated && points.length > 1 && points.length <= FEW ? 0 : (this.high - this.low) / PORTIONS;
    this.scaled = !!this.instrument || held.length > 0;
    this.bins = this.width ? Array.from({ length: PORTIONS }, (_, bin) => this.low + (bin + 0.5) * this.width) : points;
    this.apart = rated && this.instrument?.classifier !== "exact" ? Math.min(0.03, 0.7 / Math.max(this.n - 1, 1)) : 0;
  }

  colour(value) {
    return blend((value - this.low) / (this.high - this.low || 1), ANCHORS);
  }

  bin(value) {
    if (!this.width) return this.bins.indexOf(value);
    return Math.min(PORTIONS - 1, Math.max(0, Math.floor((value - this.low) / this.width)));
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

  // The ties at a step: those at the start, and every change up to then. A tie may go, or come, by itself.
  network(step) {
    const ties = new Map(this.edges.map((edge) => [`${edge[0]} ${edge[1]}`, edge]));
    for (const [at, oldSource, oldTarget, source, target] of this.ties) {
      const old = `${oldSource} ${oldTarget}`, weight = ties.get(old)?.[2] ?? 1;
      if (at <= step) ties.delete(old);
      if (at <= step && source !== null) ties.set(`${source} ${target}`, [source, target, weight]);
    }
    return [...ties.values()].filter(([source, target]) => source < this.n && target < this.n);
  }
}

// The largest change between two measured opinions of an agent that follow each other.
function largest(own) {
  const held = [...own.values()];
  return held.slice(1).reduce((found, [to, turn], place) => {
    const [from] = held[place], size = Math.abs(to - from);
    return size > found.size ? { size, turn, from, to } : found;
  }, { size: 0 });
}
