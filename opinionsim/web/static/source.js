// Answers the page's questions: from the host, or from the record that stands in the file itself.

const kept = document.getElementById("record");
export const record = kept && JSON.parse(kept.textContent);

const LOST = "The connection to the server is lost.";

export async function ask(path, given = {}, signal = undefined) {
  const asked = Object.fromEntries(Object.entries(given).filter(([, value]) => value != null && value !== ""));
  if (record) return answer(path.split("/").slice(1), asked);
  let answered, told;
  try {
    answered = await fetch(`/data/${path}?${new URLSearchParams(asked)}`, { signal });
    told = await answered.json();
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new Error(answered ? `The server gave no answer that can be read (${answered.status}).` : LOST);
  }
  if (!answered.ok) throw new Error(told.problem ?? `The server answered ${answered.status}.`);
  return told;
}

// Tells of changes of a run until the signal ends it; calls `changed` with {generation, seq, state}.
export function follow(run, since, changed, said, signal) {
  if (record) return;
  const live = new EventSource(`/live/${run}?since=${since}`);
  signal.addEventListener("abort", () => live.close());
  live.addEventListener("change", (event) => changed(JSON.parse(event.data)));
  live.addEventListener("lost", (event) => {
    live.close();
    said(JSON.parse(event.data).problem);
  });
  live.addEventListener("error", () => said(`${LOST} Trying again ...`));
  live.addEventListener("open", () => said(""));
}

function answer([what, which], asked) {
  if (!what) return record.run;
  if (what === "turns") return which === undefined ? turns(asked) : turn(Number(which));
  if (what === "agents") return record.agents[which] ?? missing("This agent is not in this file.");
  if (what === "metrics") return metrics(asked);
  return what === "deliberation" ? record.deliberation : missing("This is not in this file, which holds one run.");
}

function missing(problem) {
  throw new Error(problem);
}

function turns({ from = 0, count = 50, agent, order, instrument }) {
  const found = record.turns.filter((line) => agent === undefined || line.agent === Number(agent));
  const size = (line) => Math.abs(line.change ?? 0);
  if (order === "change") found.sort((one, other) => size(other) - size(one));
  const listed = found.slice(Number(from), Number(from) + Number(count));
  return { total: found.length, from: Number(from), turns: listed, read: read(listed, instrument) };
}

function turn(number) {
  const line = record.turns.find((each) => each.turn === number) ?? missing("This turn is not in this file.");
  const calls = (record.calls[number] ?? []).map((call) => ({ ...call, prompt: prompt(call.prompt) }));
  return { turn: line, read: read([line]), calls, currency: record.currency };
}

// The messages of a prompt, each of which names the prompt before it.
function prompt(id) {
  const messages = [];
  while (record.prompts[id]) {
    const [before, role, text] = record.prompts[id];
    messages.unshift({ role, text });
    id = before;
  }
  return messages;
}

function metrics({ instrument, kind, name }) {
  const own = record.metrics[`${instrument} ${kind}`] ?? {};
  return own[name] ?? missing(`Numbers by step of ${name} are not in this file.`);
}

// The messages that these turns were shown.
function read(lines, instrument) {
  const shown = {};
  for (const ref of lines.flatMap((line) => line.reads)) {
    const line = record.turns.find((each) => String(each.turn) === ref);
    const code = line?.codes.find((each) => each.about === null && (!instrument || each.instrument === instrument));
    const name = line && record.run.agents?.find((each) => each.agent === line.agent)?.name;
    shown[ref] = line ? { ...line, name: name || `Agent ${line.agent}`, value: code?.value ?? null } : record.read[ref];
  }
  return shown;
}
