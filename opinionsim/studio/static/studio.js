// Pages of studies and results: parts load by themselves, follow what changes, and tables sort by their headings.

const $ = (selector, place = document) => [...place.querySelectorAll(selector)];
const shown = new WeakMap(); // what each part shows
const LOST = "The connection to the server is lost; what you typed is still here.";
const REST_MS = 10_000; // between two times that figures and tables of a store that grows are made anew

// Put a part of a page, which the server escapes, in its place.
async function load(place, address, quiet = false) {
  if (quiet && place.matches(":active")) return setTimeout(() => load(place, address, quiet), 300); // a button is pressed
  if (!quiet) place.setAttribute("aria-busy", "true");
  try {
    const answered = await fetch(address), html = await answered.text();
    if (shown.get(place) !== html) put(place, html);
    shown.set(place, html);
    place.dataset.loaded = "";
  } catch {
    put(place, '<p class="problem">The connection to the server is lost.</p>');
  }
  place.removeAttribute("aria-busy");
}

// What is open, typed or under the keyboard stays so where the new part has the same.
function put(place, html) {
  const at = place.contains(document.activeElement) && $("a, button, input, summary", place).indexOf(document.activeElement);
  const typed = Object.fromEntries($("input:not([type=hidden])", place).map((each) => [each.name, each.value]));
  const open = $("details", place).map((each) => each.open);
  const box = place.tagName === "DETAILS" ? place.querySelector(":scope > .part") ?? place.appendChild(div()) : place;
  box.innerHTML = html;
  $("details", box).forEach((each, number) => (each.open ||= !!open[number]));
  $("input", box).forEach((each) => typed[each.name] && (each.value = typed[each.name]));
  if (at !== false && at >= 0) $("a, button, input, summary", place)[at]?.focus();
  ready(box);
}

const div = () => Object.assign(document.createElement("div"), { className: "part" });

// Load parts that are to load, and make the headings of tables buttons.
function ready(place) {
  for (const each of $("[data-src]", place)) {
    const now = () => shown.has(each) || load(each, each.dataset.src);
    if (each.tagName !== "DETAILS" || each.open) now();
    else each.addEventListener("toggle", now);
  }
  for (const each of $("[data-live]", place)) load(each, each.dataset.live);
  for (const head of $("table.sortable thead th", place)) {
    const press = Object.assign(document.createElement("button"), { type: "button", textContent: head.textContent });
    press.addEventListener("click", () => sort(head));
    head.replaceChildren(press);
  }
  for (const each of $("[data-levels]", place)) slide(each);
}

function sort(head) {
  const table = head.closest("table"), place = head.cellIndex, down = head.ariaSort === "ascending";
  const value = (row) => row.cells[place].textContent.replace("−", "-");
  const compare = (one, other) => one.localeCompare(other, "en", { numeric: true });
  const number = (text) => (text.trim() === "" || Number.isNaN(Number(text)) ? null : Number(text));
  const rows = [...table.tBodies[0].rows].sort((one, other) => {
    const [a, b] = [value(one), value(other)], [x, y] = [number(a), number(b)];
    return (x !== null && y !== null ? x - y : compare(a, b)) * (down ? -1 : 1);
  });
  $("th", head.parentElement).forEach((each) => each.removeAttribute("aria-sort"));
  head.ariaSort = down ? "descending" : "ascending";
  table.tBodies[0].replaceChildren(...rows);
}

// A slider over the levels of a factor, which enter the address of this page or of another one.
function slide(range) {
  const levels = JSON.parse(range.dataset.levels), shown = range.nextElementSibling;
  range.addEventListener("input", () => (shown.textContent = range.ariaValueText = levels[range.value]));
  range.addEventListener("change", () => {
    const address = new URL(range.dataset.page ?? "", location.href);
    address.searchParams.set(range.name, levels[range.value]);
    location.assign(address);
  });
}

// A key presses the button or link that names it, while the place that says so has the focus.
for (const each of $("[data-keys]")) {
  each.focus();
  each.addEventListener("keydown", (event) => {
    const same = (own) => own.dataset.key.toLowerCase() === event.key.toLowerCase();
    if (!event.repeat && !event.ctrlKey && !event.altKey && !event.metaKey) $("[data-key]", each).find(same)?.click();
  });
}

// Filters take effect at once; a filter that is not set does not enter the address.
for (const form of $("[data-filters]")) {
  form.addEventListener("change", () => form.requestSubmit());
  form.addEventListener("submit", () => $("select, input", form).forEach((each) => (each.disabled = !each.value)));
}
addEventListener("pageshow", () => $("[data-filters] select").forEach((each) => (each.disabled = false)));

// Follow what changes, while the page can be seen.
let due = 0, stream = null;
const place = document.querySelector("[data-changes]");
function follow() {
  stream?.close();
  if (!place || document.hidden) return;
  stream = new EventSource(`/changes?${place.dataset.changes}`);
  stream.addEventListener("change", async ({ data }) => {
    await Promise.all($("[data-live]").map((each) => load(each, each.dataset.live, true)));
    if (place.tagName === "SECTION") due ||= setTimeout(anew, REST_MS);
    if (data) check?.(); // the file was changed
  });
}
function anew() {
  due = 0;
  for (const each of $("[data-src]")) if (shown.has(each)) load(each, each.dataset.src, true);
}
document.addEventListener("visibilitychange", follow);
follow();

// The text of a study: checked as one types, saved by a button or by Ctrl-S.
const form = document.getElementById("edit"), text = form?.elements.text, saved = text?.defaultValue;
const check = form && (async () => {
  const told = document.getElementById("verdict"), allow = document.getElementById("allow");
  const answered = await send(form.dataset.check);
  if (answered?.status === 204) return; // a later text is being checked
  const found = answered ? await answered.json() : { problem: LOST };
  document.getElementById("elsewhere").hidden = !found.changed;
  allow.hidden = !found.own;
  told.className = found.problem ? "problem" : "small";
  told.replaceChildren(found.problem ?? (found.own ? "Parts of your own are not read yet." : "The text can run as it is."));
  if (text.value !== saved) told.append(" It is not saved yet.");
  // Of an error in a file that the study names, the line in the file that is edited counts.
  const line = found.problem?.split(`${form.elements.file.value}:`)[1]?.match(/^\d+(?=:)/)?.[0];
  if (line) told.append(" ", press(`Go to line ${line}`, () => go(Number(line))));
  if (found.own) {
    allow.replaceChildren(...found.own.map((name) => Object.assign(document.createElement("input"), { type: "hidden", name })),
      Object.assign(document.createElement("p"), { textContent: `This study uses code of your own: ${found.own.join(", ")}. Reading it runs it.` }),
      Object.assign(document.createElement("button"), { textContent: "Allow it in this folder" }));
  }
  if (found.html) put(document.getElementById("meaning"), found.html);
  document.body.dataset.kind = found.kind ?? document.body.dataset.kind ?? "";
  document.getElementById("meaning").classList.toggle("old", !!found.problem);
});

// Send the text; nothing comes back where the connection is lost.
const send = (address, redirect = "follow") => fetch(address, { method: "POST", redirect,
  headers: { accept: "application/json" }, body: new URLSearchParams(new FormData(form)) }).catch(() => null);

function press(words, act) {
  const made = Object.assign(document.createElement("button"), { type: "button", textContent: words });
  made.addEventListener("click", act);
  return made;
}

function go(line) {
  const start = text.value.split("\n").slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  text.focus();
  text.setSelectionRange(start, start + text.value.slice(start).search(/\n|$/));
  text.scrollTop = (text.scrollHeight / text.value.split("\n").length) * (line - 4);
}

if (form) {
  let typing = 0, leaving = false;
  text.addEventListener("input", () => (clearTimeout(typing), (typing = setTimeout(check, 300))));
  text.addEventListener("keydown", (event) => {
    if (event.key === "s" && (event.ctrlKey || event.metaKey)) event.preventDefault(), form.requestSubmit();
  });
  // What was typed leaves this page once it is saved, or stands beside the text that another has saved.
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const answered = await send(form.action, "manual");
    if (answered && (answered.type === "opaqueredirect" || answered.status === 409)) return (leaving = true), form.submit();
    const told = document.getElementById("verdict");
    told.className = "problem";
    told.textContent = `Not saved: ${answered ? (await answered.json()).problem : LOST}`;
  });
  addEventListener("beforeunload", (event) => !leaving && text.value !== saved && event.preventDefault());
  check();
}
ready(document);
