// The page: what its address asks for, drawn into a part of its own, so that a late answer finds no page to spoil.

import { meta, record } from "./source.js";
import { el, head, link, say, small } from "./parts.js";
import { agentView, dialogueView, searchView, turnView } from "./reading.js";
import { runView } from "./run.js";

const VIEWS = [
  [/^run\/(\w+)$/, runView],
  [/^run\/(\w+)\/agent\/(\d+)$/, agentView], [/^run\/(\w+)\/turn\/(\d+)$/, turnView],
  [/^run\/(\w+)\/dialogue$/, dialogueView], [/^search$/, searchView],
];
const HOME = record ? `#/run/${record.run.run_id}` : meta("results");
const view = document.getElementById("view"), title = document.querySelector(".top h1");
let ending = new AbortController();

async function draw(event) {
  if (!location.hash.startsWith("#/")) return record ? (history.replaceState(null, "", HOME), draw(event)) : location.replace(HOME);
  ending.abort();
  ending = new AbortController();
  const { signal } = ending, [path, asked] = location.hash.slice(2).split("?");
  const [found, show] = VIEWS.map(([pattern, each]) => [pattern.exec(path), each]).find(([each]) => each) ?? [];
  // A list of choices has the same name in the view that the choice leads to, and keeps the keyboard.
  const chosen = document.activeElement?.closest("select")?.id;
  say("");
  view.setAttribute("aria-busy", "true");
  let made;
  try {
    if (!show) throw new Error("There is nothing at this address.");
    made = await show(found.slice(1), Object.fromEntries(new URLSearchParams(asked)), signal);
  } catch (problem) {
    if (signal.aborted) return;
    head("Not possible");
    made = [el("p", { class: "problem", dir: "auto", role: "alert" }, problem.message), link("To the start", HOME)];
  }
  if (signal.aborted) return;
  view.replaceChildren(el("div", {}, made));
  view.dataset.at = `#/${path}`;
  view.removeAttribute("aria-busy");
  if (event) (document.getElementById(chosen) ?? title).focus();
}

if (record) document.querySelector(".brand a").href = HOME;
title.tabIndex = -1;
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  title.focus();
});
if (record) {
  const exported = `Exported ${new Date(record.exported_at).toLocaleString()}.`;
  document.querySelector("main").prepend(small([exported, ...record.left_out].join(" ")));
}
addEventListener("hashchange", draw);
draw();
