// The page: what its address asks for, drawn into a part of its own, so that a late answer finds no page to spoil.

import { record } from "./source.js";
import { el, fill, head, say } from "./parts.js";
import { experimentView, experimentsView } from "./experiments.js";
import { agentView, dialogueView, searchView, turnView } from "./reading.js";
import { runView } from "./run.js";

const VIEWS = [
  [/^$/, experimentsView], [/^experiment\/(\w+)$/, experimentView], [/^run\/(\w+)$/, runView],
  [/^run\/(\w+)\/agent\/(\d+)$/, agentView], [/^run\/(\w+)\/turn\/(\d+)$/, turnView],
  [/^run\/(\w+)\/dialogue$/, dialogueView], [/^search$/, searchView],
];
const home = record ? `#/run/${record.run.run_id}` : "#/";
let ending = new AbortController();

async function draw(event) {
  if (!location.hash.startsWith("#/")) return history.replaceState(null, "", home), draw(event);
  ending.abort();
  ending = new AbortController();
  const { signal } = ending, place = el("div");
  const [path, asked] = location.hash.slice(2).split("?");
  const view = VIEWS.map(([pattern, show]) => [pattern.exec(path), show]).find(([found]) => found);
  say("");
  document.getElementById("view").replaceChildren(place);
  place.setAttribute("aria-busy", "true");
  place.dataset.at = location.hash.split("?")[0];
  try {
    if (!view) throw new Error("There is nothing at this address.");
    await view[1](place, view[0].slice(1), Object.fromEntries(new URLSearchParams(asked)), signal);
  } catch (problem) {
    if (signal.aborted) return;
    head("Not possible");
    fill(place, el("p", { class: "problem", dir: "auto", role: "alert" }, problem.message), el("p", {}, el("a", { href: home }, "To the start")));
  }
  place.removeAttribute("aria-busy");
  if (event) document.querySelector(".top h1").focus();
}

document.querySelector(".brand a").href = home;
document.querySelector(".top h1").tabIndex = -1;
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.querySelector(".top h1").focus();
});
if (record) {
  const left = [`Exported ${new Date(record.exported_at).toLocaleString()}.`, ...record.left_out].join(" ");
  document.querySelector("main").prepend(el("p", { class: "small", dir: "auto" }, left));
}
addEventListener("hashchange", draw);
draw();
