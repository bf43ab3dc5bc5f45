// Small parts that every view is made of. Texts of people and models enter the page as text nodes alone.

export function el(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value != null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  return fill(made, ...children);
}

// Put parts in the place of what an element holds; what is absent is left out.
export function fill(place, ...children) {
  place.replaceChildren(...children.flat(9).filter((child) => child != null && child !== false && child !== ""));
  return place;
}

// A text of a person, a model or a file: its own direction, its own line breaks; of a very long one, the beginning.
const LONG = 2000;
export const text = (what, kind = "text", tag = "div") =>
  el(tag, { class: kind, dir: "auto" }, what?.length > LONG && typeof what === "string" ? folded(what) : what);

function folded(what) {
  const [start] = /^.{300}/su.exec(what), more = el("span", { class: "small" }, ` … ${whole(what.length)} characters`);
  return el("details", { class: "folded" }, el("summary", {}, start, more), what.slice(start.length));
}

export const small = (...what) => text(what, "small", "p");
export const strong = (what) => text(what, "", "strong");
export const chip = (...what) => text(what, "chip", "span");

export const given = (asked) => Object.entries(asked).filter(([, value]) => value != null && value !== "");

const address = (path, asked) => [path, new URLSearchParams(given(asked)).toString()].filter(Boolean).join("?");

export const to = (parts, asked = {}) => address(`#/${parts.map((part) => encodeURIComponent(part)).join("/")}`, asked);

const asked = () => Object.fromEntries(new URLSearchParams(location.hash.split("?")[1]));

// The present address, which asks for something else.
export const here = (more) => address(location.hash.split("?")[0], { ...asked(), ...more });

// An address within a run, which stays in the cell and with the measurements of the present one.
const kept = ({ row, instrument, kind }) => ({ row, instrument, kind });
export const within = (run, parts = [], more = {}) => to(["run", run, ...parts], { ...kept(asked()), ...more });

export const link = (words, href, more = {}) => el("a", { href, dir: "auto", ...more }, words);
export const turnLink = (run, turn, words = `turn ${turn}`, more = {}) =>
  link(words, within(run, ["turn", turn], more), { class: "small" });
export const ways = (name, ...links) => el("nav", { class: "ways", "aria-label": name }, links);

export const whole = (number) => Number(number).toLocaleString("en");
export const counted = (number, one, many = `${one}s`) => `${whole(number)} ${number === 1 ? one : many}`;

// A number as printed: at most so many decimals, a proper minus sign; a dash where there is none.
export function signed(value, decimals = 2) {
  if (value == null || Number.isNaN(value)) return "–";
  return String(Number(value.toFixed(decimals)) + 0).replace("-", "−");
}

// A table, which scrolls by itself where the page is narrower; the first cell of a row is its head.
export function table(caption, columns, rows) {
  const cell = (what, place) => el(place ? "td" : "th", place ? {} : { scope: "row" }, what);
  return el("div", { class: "wide", tabindex: 0, role: "group", "aria-label": caption },
    el("table", {}, el("caption", {}, caption),
      el("thead", {}, el("tr", {}, columns.map((name) => el(name ? "th" : "td", name ? { scope: "col" } : {}, name)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map(cell))))));
}

// Numbers that are made when they are opened, and again when they change, but never under the keyboard.
export function numbers(name, make, open = false) {
  const place = el("div"), box = el("details", { class: "numbers", open }, el("summary", {}, name), place);
  let due = 0;
  const draw = () => {
    due = 0;
    if (box.open && !place.contains(document.activeElement)) fill(place, make());
  };
  box.addEventListener("toggle", draw);
  return { box, change: () => void (due ||= setTimeout(draw, 200)) };
}

export const go = (more) => void (location.hash = here({ from: "", ...more }));

// A list to choose from: what is chosen enters the address under its name, or is told to a function.
export function choice(label, name, options, chosen, changed = (value) => go({ [name]: value })) {
  const listed = options.map((each) => [each].flat()).map(([value, words = value]) =>
    el("option", { value, selected: String(value) === String(chosen) }, words));
  const list = el("select", { id: name, change: (event) => changed(event.target.value) }, listed);
  return listed.length > 1 && el("label", {}, `${label} `, list);
}

export const choices = (...lists) => el("div", { class: "choices" }, lists);

export const terms = (facts) => el("dl", { class: "terms" }, given(facts).map(([name, value]) =>
  el("div", {}, el("dt", {}, name), text(value, "", "dd"))));

// What happens, for the eye and for screen readers.
export function say(what) {
  const place = document.getElementById("said");
  if (place.textContent !== what) place.textContent = what;
}

export const titled = ({ about, run_id: id }) => (about ? `${about.experiment}, run ${about.run}` : `Run ${id}`);

export function head(title, stamps = [], state = "") {
  const special = ["withdrawn", "trial"].includes(state) ? state.toUpperCase() : "";
  const marks = [...new Set([...stamps, special])].filter(Boolean);
  document.title = [title, ...marks, "opinionsim"].join(" · ");
  document.querySelector(".top h1").textContent = title;
  document.querySelector(".top .stamp")?.remove();
  if (marks.length) document.querySelector(".top").append(text(marks.join(" · "), "stamp", "p"));
}
