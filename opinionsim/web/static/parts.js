// Small parts that every view is made of. Texts of people and models enter the page as text nodes alone.

export function el(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value != null && value !== false) made.setAttribute(name, value);
  }
  return fill(made, ...children);
}

// Put parts in the place of what an element holds; what is absent is left out.
export function fill(place, ...children) {
  place.replaceChildren(...children.flat(9).filter((child) => child != null && child !== false && child !== ""));
  return place;
}

// A text of a person, a model or a file: its own direction, its own line breaks.
export const text = (what, kind = "text", tag = "div") => el(tag, { class: kind, dir: "auto" }, String(what ?? ""));

// An address of the page itself.
export function to(parts, given = {}) {
  const asked = Object.entries(given).filter(([, value]) => value != null && value !== "");
  const path = parts.map((part) => encodeURIComponent(part)).join("/");
  return `#/${path}${asked.length ? `?${new URLSearchParams(asked)}` : ""}`;
}

export const link = (words, parts, given, more = {}) => el("a", { href: to(parts, given), dir: "auto", ...more }, words);

export const go = (parts, given) => void (location.hash = to(parts, given));

export const whole = (number) => Number(number).toLocaleString("en");

// A number as printed: at most so many decimals, a proper minus sign; a dash where there is none.
export function signed(value, decimals = 2) {
  if (value == null || Number.isNaN(value)) return "–";
  return String(Number(value.toFixed(decimals)) + 0).replace("-", "−");
}

// Hours, minutes and seconds.
export const duration = (seconds) => `${Math.floor(seconds / 3600)}:${new Date(1000 * seconds).toISOString().slice(14, 19)}`;

export const counted = (number, one, many = `${one}s`) => `${whole(number)} ${number === 1 ? one : many}`;

// A table that scrolls by itself where the page is narrower.
export const framed = (name, made) => el("div", { class: "wide", tabindex: 0, role: "group", "aria-label": name }, made);

export function table(caption, columns, rows) {
  const cells = (row) => row.map((cell, place) => el(place ? "td" : "th", place ? {} : { scope: "row" }, cell ?? ""));
  return framed(caption, el("table", {}, el("caption", {}, caption),
    el("thead", {}, el("tr", {}, columns.map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, cells(row))))));
}

// Numbers behind a figure: made when they are opened, and made again when they change, but never under the keyboard.
export function numbers(name, make, open = false) {
  const place = el("div"), box = el("details", { class: "numbers", open }, el("summary", {}, name), place);
  let due = 0;
  const draw = () => {
    due = 0;
    if (box.open && !place.contains(document.activeElement?.closest("a"))) fill(place, make());
  };
  const change = () => void (box.open && (due ||= setTimeout(draw, 200)));
  box.addEventListener("toggle", draw);
  return { box, change };
}

export function choice(label, options, chosen, changed) {
  const list = options.map(([value, words]) => el("option", { value, selected: String(value) === String(chosen) }, words));
  return el("label", {}, label, " ", el("select", { change: (event) => changed(event.target.value) }, list));
}

export function terms(pairs) {
  const known = pairs.filter(([, value]) => value != null && value !== "");
  return el("dl", { class: "terms" }, known.map(([name, value]) => el("div", {}, el("dt", {}, name),
    el("dd", { dir: "auto" }, value instanceof Node ? value : String(value)))));
}

// What happens, for the eye and for screen readers.
export function say(what) {
  const place = document.getElementById("said");
  if (place.textContent !== what) place.textContent = what;
}

export const titled = ({ about, run_id: id }) => (about ? `${about.experiment}, run ${about.row}` : `Run ${id}`);

export function head(title, stamp = "", state = "") {
  const marks = [stamp, ["withdrawn", "trial"].includes(state) ? state.toUpperCase() : ""].filter(Boolean).join(" · ");
  document.title = [title, marks, "opinionsim"].filter(Boolean).join(" · ");
  document.querySelector(".top h1").textContent = title;
  document.querySelector(".top .stamp")?.remove();
  if (marks) document.querySelector(".top").append(el("p", { class: "stamp", dir: "auto" }, marks));
}
