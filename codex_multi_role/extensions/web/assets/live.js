// What the pages do by themselves. Without it everything is there, too: reload the page for what is new.
"use strict";

const LINES_KEPT = 1000;
const AT_END_PIXELS = 40;
const LIVING = ["running", "waiting", "queued"];

function seconds(text) {
  const rounded = Math.round(text * 10) / 10;
  if (rounded < 60) return `${rounded.toFixed(1)} s`;
  const whole = Math.round(text);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  return `${Math.floor(whole / 3600)} h ${String(Math.floor((whole % 3600) / 60)).padStart(2, "0")} min`;
}

function tick() {
  for (const each of document.querySelectorAll("[data-since]")) {
    const since = (Date.now() - Date.parse(each.dataset.since)) / 1000;
    const words = seconds(Math.max(0, since) + Number(each.dataset.before || 0));
    each.textContent = each.dataset.before === undefined ? `${each.getAttribute("datetime") ? clock(each) : ""} (${words})` : words;
  }
}

function clock(each) {
  each.dataset.clock = each.dataset.clock || each.textContent.trim();
  return each.dataset.clock;
}

// Put new content into an element; what was typed, opened and focused in it stays.
function replace(element, html) {
  const typed = new Map();
  for (const field of element.querySelectorAll("textarea[id], input[id], select[id]")) typed.set(field.id, [field.value, field.checked]);
  const opened = element.querySelector("details[open]") !== null;
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  const start = focused && "selectionStart" in focused ? focused.selectionStart : null;
  element.innerHTML = html; // made by our own templates, which escape all that they fill in
  for (const [id, [value, checked]] of typed) {
    const field = document.getElementById(id);
    if (field && (field.tagName !== "SELECT" || [...field.options].some((option) => option.value === value))) Object.assign(field, field.type === "checkbox" ? { checked } : { value });
  }
  if (opened) for (const each of element.querySelectorAll("details")) each.open = true;
  if (focused) {
    const again = (focused.id && document.getElementById(focused.id)) || element.querySelector("h2");
    if (again) {
      if (again.tagName === "H2") again.tabIndex = -1;
      again.focus({ preventScroll: true });
      if (start !== null && again.setSelectionRange && again.type !== "number") again.setSelectionRange(start, start);
    }
  }
}

function followRun(log) {
  let last = Number(log.dataset.after);
  let status = log.dataset.status;
  let source = null;
  const title = document.title;
  const connection = document.getElementById("connection");
  const announce = document.getElementById("announce");

  function append(lines) {
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < AT_END_PIXELS;
    const fragment = document.createDocumentFragment();
    for (const line of lines.slice(-LINES_KEPT)) {
      const paragraph = document.createElement("p");
      paragraph.textContent = line;
      fragment.append(paragraph);
    }
    log.append(fragment);
    while (log.childElementCount > LINES_KEPT) log.firstElementChild.remove();
    if (atEnd) log.scrollTop = log.scrollHeight;
  }

  function take(event) {
    const news = JSON.parse(event.data);
    last = Number(event.lastEventId);
    append(news.lines);
    for (const part of news.parts) {
      const element = document.getElementById(part.name);
      if (element.dataset.version === part.version) continue;
      replace(element, part.html);
      element.dataset.version = part.version;
    }
    if (news.status !== status) {
      status = news.status;
      connection.textContent = LIVING.includes(status) ? "live" : "";
      document.title = title.replace(/^\S+/, news.symbol);
      document.getElementById("icon").href = `/static/icon-${news.tone || "idle"}.svg`;
      announce.textContent = news.said;
    }
    tick();
  }

  function open() {
    if (source) return;
    source = new EventSource(`${log.dataset.stream}?after=${last}`);
    source.onopen = () => { connection.textContent = LIVING.includes(status) ? "live" : ""; };
    source.onerror = () => {
      connection.textContent = "not connected, trying again";
      if (source.readyState === EventSource.CLOSED) { // refused: the browser does not try again by itself
        close();
        setTimeout(() => { if (!document.hidden) open(); }, 5000);
      }
    };
    source.addEventListener("news", take);
  }

  function close() {
    if (source) source.close();
    source = null;
  }

  // A browser holds few connections to one server: pages that nobody sees hold none.
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  window.addEventListener("pagehide", close);
  log.scrollTop = log.scrollHeight;
  if (!document.hidden) open();
}

function reloadList(list) {
  setInterval(async () => {
    if (document.hidden || list.contains(document.activeElement)) return;
    try {
      const answer = await fetch(location.href);
      if (!answer.ok) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("list");
      if (fresh && fresh.innerHTML !== list.innerHTML && !list.contains(document.activeElement)) list.innerHTML = fresh.innerHTML;
    } catch {
      // the server is gone; the next time it may be back
    }
  }, Number(list.dataset.reload) * 1000);
}

// A comment on a line of a diff gets its place at once; without this, the server answers with it.
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[name=add]");
  const fields = ["side", "line", "path"].map((part) => document.querySelector(`[name="chosen.${part}"]`));
  if (!button || (button.value === "chosen" && !fields[1].value)) return;
  const place = button.value === "chosen" ? fields.map((each) => each.value).join(":") : button.value;
  const line = [...document.querySelectorAll(".no button")].find((each) => each.value === place);
  const known = document.getElementById(`on.${place}`);
  if (!line && !known) return; // a line that is not shown: the server makes its place
  event.preventDefault();
  if (!known) {
    const row = document.createElement("tr");
    row.className = "boxed";
    const [side, number, ...path] = place.split(":");
    const label = Object.assign(document.createElement("label"), { htmlFor: `on.${place}`, textContent: `${path.join(":")}, ${side === "after" ? "line" : "old line"} ${number}` });
    const text = Object.assign(document.createElement("textarea"), { id: `on.${place}`, name: `on.${place}`, rows: 2, maxLength: 20000 });
    text.setAttribute("form", "decision");
    const box = Object.assign(document.createElement("div"), { className: "on-line" });
    const cell = Object.assign(document.createElement("td"), { colSpan: 3 });
    box.append(label, text);
    cell.append(box);
    row.append(cell);
    line.closest("tr").after(row);
  }
  document.getElementById(`on.${place}`).focus();
});

// A form that was sent does nothing more when its button is pressed again.
document.addEventListener("submit", (event) => {
  if (event.submitter && event.submitter.formMethod === "dialog") return; // nothing is sent by it
  if (event.target.dataset.sent) event.preventDefault();
  event.target.dataset.sent = "yes";
  event.target.setAttribute("aria-busy", "true");
});
window.addEventListener("pageshow", () => {
  for (const form of document.forms) { delete form.dataset.sent; form.removeAttribute("aria-busy"); }
});

const log = document.getElementById("log");
const list = document.getElementById("list");
if (log) followRun(log);
if (list) reloadList(list);
tick();
setInterval(tick, 1000);
