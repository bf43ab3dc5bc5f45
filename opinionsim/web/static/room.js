// What moves on the page of a session: new messages, whose turn it is, and what is being written.
// Everything works without it; what is shown comes from the server, escaped.

const room = document.getElementById("room");
const own = `/sessions/${room.dataset.run}`;

function drafts() {
  const form = document.getElementById("answer");
  if (!form) return;
  const key = `draft.${form.dataset.draft}`, kept = JSON.parse(localStorage.getItem(key) ?? "{}");
  for (const field of form.querySelectorAll("textarea, input:not([type=hidden])")) {
    if (field.type === "radio") field.checked ||= kept[field.name] === field.value;
    else field.value ||= kept[field.name] ?? "";
  }
  form.addEventListener("input", () => localStorage.setItem(key, JSON.stringify(Object.fromEntries(new FormData(form)))));
  const text = form.querySelector("textarea");
  if (!text) return;
  text.addEventListener("input", () => {
    const most = Number(text.dataset.words), least = Number(text.dataset.least);
    const words = text.value.trim().split(/\s+/).filter(Boolean).length;
    if (most && words > most) say(`${words} words; at most ${most} are possible`);
    else if (words < least) say(`${words} words; at least ${least} are needed`);
    else if (most || least) say(most ? `${words} of ${most} words` : `${words} words`);
  });
  text.addEventListener("paste", (event) => {
    if (text.dataset.typed) refuse(event);
  });
  text.addEventListener("dragover", (event) => event.preventDefault());
  text.addEventListener("drop", (event) => {
    const what = event.dataTransfer.getData("text/plain");
    if (text.dataset.typed && what !== dragged) return refuse(event);
    event.preventDefault();
    put(what);
  });
}

// The text of the page that is dragged: all else that is dropped was written elsewhere.
let dragged = null;

function refuse(event) {
  event.preventDefault();
  say("Please type your text: none can be pasted or dropped here.");
}

function put(what) {
  const text = document.querySelector("#answer textarea");
  if (!text || !what) return;
  text.value = [text.value.trim(), what].filter(Boolean).join("\n") + " ";
  text.dispatchEvent(new Event("input", { bubbles: true }));
  text.focus();
}

function say(what) {
  const status = document.querySelector("#seat .status");
  if (status) status.textContent = what;
}

// What stands beside the dialogue may offer texts, to be taken into one's own.
function offers() {
  const writing = Boolean(document.querySelector("#answer textarea"));
  for (const button of document.querySelectorAll(".take")) {
    button.hidden = !writing;
    button.onclick = () => put(button.parentElement.querySelector("[data-text]").dataset.text);
  }
  for (const each of document.querySelectorAll("[data-text]")) {
    each.ondragstart = (event) => event.dataTransfer.setData("text/plain", dragged = each.dataset.text);
  }
}

// Answers may overtake each other: only that to the last request counts.
const asked = {};

async function part(name, place = name) {
  const number = (asked[name] = (asked[name] ?? 0) + 1);
  const answer = await fetch(`${own}/${place}`, { headers: { accept: "text/html" } });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const found = page.getElementById(name);
  if (!found || asked[name] !== number) return;
  document.getElementById(name).replaceWith(document.adoptNode(found));
  if (name === "seat") {
    drafts();
    forms();
    if (found.classList.contains("yours")) document.getElementById("now").focus({ preventScroll: false });
  }
  offers();
}

function forms() {
  for (const form of document.querySelectorAll("#seat form")) form.addEventListener("submit", send);
}

async function send(event) {
  event.preventDefault();
  const form = event.currentTarget;
  const given = new URLSearchParams(new FormData(form, event.submitter));
  const buttons = form.querySelectorAll("button");
  for (const button of buttons) button.disabled = true;
  say("Sending ...");
  try {
    const answer = await fetch(form.action, { method: "POST", body: given, headers: { accept: "application/json" } });
    const content = await answer.text();
    const told = answer.headers.get("content-type")?.includes("json") ? JSON.parse(content) : {};
    if (answer.ok && form.id === "answer") {
      localStorage.removeItem(`draft.${form.dataset.draft}`);
      say(told.sent === "already" ? "This was sent already." : "Sent, and on record.");
      return;
    }
    const notice = new DOMParser().parseFromString(content, "text/html").querySelector(".notice")?.textContent;
    const noted = told.sent === "reported"
      ? "Your report is on record, and the owner of the room sees it."
      : "Noted; it is taken up with the next step.";
    if (told.sent === "reported") form.reset();
    say(answer.ok ? noted : told.problem ?? notice ?? "It was not taken.");
  } catch {
    say("The connection is lost; nothing was sent. Your text stays here: please send it again.");
  }
  for (const button of buttons) button.disabled = false;
}

function add({ turn, html }) {
  const list = document.getElementById("lines");
  const page = new DOMParser().parseFromString(html, "text/html");
  const line = document.adoptNode(page.querySelector("li"));
  document.getElementById(line.id)?.remove();
  const next = [...list.children].reverse().find((each) => Number(each.dataset.turn) < turn);
  const near = innerHeight + scrollY > document.body.scrollHeight - 300;
  next ? next.after(line) : list.prepend(line);
  if (near && !document.querySelector("#answer")) line.scrollIntoView({ block: "nearest" });
}

setInterval(() => {
  const left = document.querySelector("#seat .left");
  if (!left) return;
  left.dataset.until ??= Date.now() + 1000 * Number(left.dataset.left);
  const seconds = Math.max(0, Math.round((Number(left.dataset.until) - Date.now()) / 1000));
  const minutes = Math.floor(seconds / 60);
  left.textContent = minutes ? `${minutes} min ${seconds % 60} s` : `${seconds} seconds`;
}, 500);

const live = new EventSource(`${own}/live?since=${room.dataset.since}`);
live.addEventListener("line", (event) => add(JSON.parse(event.data)));
live.addEventListener("beside", ({ data }) => part(data, `beside/${data}`));
live.addEventListener("seat", (event) => {
  if (document.getElementById("seat").dataset.key !== event.data) part("seat");
});
live.addEventListener("state", (event) => {
  const state = document.getElementById("state");
  if (state.textContent === event.data) return;
  state.textContent = event.data;
  if (event.data.startsWith("withdrawn")) location.reload();
  part("seat");
});
live.addEventListener("lost", (event) => {
  live.close();
  say(`This session cannot be read any more: ${event.data}`);
});
live.addEventListener("error", () => say(live.readyState === EventSource.CLOSED
  ? "This page is not told of anything new any more; please open it again." : "The connection is lost; trying again ..."));
live.addEventListener("open", () => say(""));

drafts();
forms();
offers();
