// Answers the page's questions: from the host, or from the record that stands in the file itself.

import { given } from "./parts.js";

const kept = document.getElementById("record");
export const record = kept && JSON.parse(kept.textContent);
export const meta = (name) => document.querySelector(`meta[name="${name}"]`).content;

const LOST = "The connection to the server is lost.";
const ENDED = ["complete", "withdrawn", "trial", "incomplete"];
const USUAL = "This file has changes by the first instrument and kind of text alone, and ranks by these.";
const MOST_HITS = 50, AROUND = 200, CUT_FIRST = /^\S{1,20}\s/u, CUT_LAST = /\s\S{1,20}$/u;
const lines = new Map(record?.turns.map((line) => [String(line.turn), line]));

export async function ask(path, wanted = {}, signal = undefined) {
  if (record) return answer(path.split("/"), Object.fromEntries(given(wanted)));
  let answered, told;
  try {
    answered = await fetch(`/data/${path}?${new URLSearchParams(given({ ...wanted, store: meta("store") }))}`, { signal });
    told = await answered.json();
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new Error(answered ? `The server gave no answer that can be read (${answered.status}).` : LOST);
  }
  if (!answered.ok) throw new Error(told.problem ?? `The server answered ${answered.status}.`);
  return told;
}

// Ask for what is new in a run whenever there is something, one question at a time, until the signal ends it. A browser
// keeps but six streams to a host open: a run that has ended has one until its first answer, a page out of sight none.
export function follow(run, look, say, signal) {
  if (record) return;
  let live = null, last = Promise.resolve();
  const close = () => live?.close(), failed = ({ message }) => signal.aborted || say(message);
  const news = (known = () => false) => (last = last.then(() => signal.aborted || known() || look()).catch(failed));
  const told = {
    change: (event) => {
      const now = Object.entries(JSON.parse(event.data));
      if (now.some(([, value]) => ENDED.includes(value))) close();
      news(() => now.every(([name, value]) => run[name] === value));
    },
    lost: (event) => (close(), say(JSON.parse(event.data).problem)),
    // A stream that was refused does not try again: the answer to a question says why.
    error: () => (live.readyState === EventSource.CLOSED ? news() : say(`${LOST} Trying again ...`)),
    open: () => say(""),
  };
  const open = () => {
    close();
    if (document.hidden) return;
    live = new EventSource(`/live/${run.run_id}?${new URLSearchParams({ since: `${run.generation}.${run.seq}`, store: meta("store") })}`);
    for (const [name, act] of Object.entries(told)) live.addEventListener(name, act);
  };
  document.addEventListener("visibilitychange", open, { signal });
  signal.addEventListener("abort", close);
  open();
}

// The page of the results of an experiment.
export const results = (experiment, design) =>
  `${meta("results").split("?")[0]}?${new URLSearchParams(given({ experiment, design }))}`;

function answer([source, , what, which], asked) {
  if (source === "search") return search(asked);
  if (source !== "runs") return missing();
  if (!what) return record.run;
  if (what === "turns") return which === undefined ? turns(asked) : turn(which);
  if (what === "metrics") return record.metrics[`${asked.instrument} ${asked.kind}`]?.[asked.name] ?? missing();
  return (what === "agents" ? record.agents[which] : record[what]) ?? missing();
}

function missing() {
  throw new Error("This is not in this file, which holds one run.");
}

function turns({ from = 0, count, agent, order, instrument, kind }) {
  const found = record.turns.filter((line) => agent === undefined || line.agent === Number(agent));
  const size = (line) => Math.abs(line.change ?? 0), first = Number(from);
  if (order === "change") found.sort((one, other) => size(other) - size(one));
  const listed = found.slice(first, first + count);
  return { total: found.length, from: first, turns: listed, read: read(listed), note: (instrument || kind) && USUAL };
}

// What the host finds in an experiment, in the one run of the file.
function search({ q = "", agent = "", act = "", status = "", from = 0 }) {
  const { run_id, about, agents } = record.run, distinct = (name) => [...new Set(record.turns.map((line) => line[name]))].sort();
  const named = Object.fromEntries(agents.map((each) => [each.agent, each.name || `agent ${each.agent}`]));
  const wanted = RegExp(q.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "iu"), first = Number(from);
  const hits = record.turns.flatMap((line) => {
    const fits = ["", line.act].includes(act) && ["", line.status].includes(status)
      && ["", String(line.agent), named[line.agent]].includes(agent), found = fits && wanted.exec(line.text);
    if (!found) return [];
    const { length } = line.text, end = found.index + found[0].length, most = found[0].length + 2 * AROUND;
    const begin = Math.max(Math.min(found.index - AROUND, length - most), 0), stop = begin + most;
    const before = line.text.slice(begin, found.index), after = line.text.slice(end, stop);
    const excerpt = [begin > 0 ? `…${before.replace(CUT_FIRST, "")}` : before, found[0],
      stop < length ? `${after.replace(CUT_LAST, "")}…` : after];
    return { ...line, run_id, row: about.row, run: about.run, name: named[line.agent], excerpt };
  });
  return { stamp: about.stamp, total: hits.length, from: first, hits: hits.slice(first, first + MOST_HITS),
    acts: distinct("act"), statuses: distinct("status"), cells: [about.cell], agents: Object.values(named) };
}

function turn(number) {
  const line = lines.get(number) ?? missing();
  const calls = (record.calls[number] ?? []).map((call) => ({ ...call, prompt: prompt(call.prompt) }));
  return { turn: line, read: read([line]), calls, currency: record.currency, left_out: record.left_out };
}

// The messages of a prompt, each of which names the one before it.
function prompt(id) {
  const messages = [];
  for (let [before, role, text] = record.prompts[id] ?? []; role; [before, role, text] = record.prompts[before] ?? []) {
    messages.unshift({ role, text });
  }
  return messages;
}

// The messages that these turns were shown.
const read = (listed) => Object.fromEntries(listed.flatMap((line) => line.reads).map((ref) => {
  const line = lines.get(ref), value = line?.codes.find((code) => code.about === null)?.value;
  return [ref, line ? { ...line, value } : record.read[ref]];
}));
