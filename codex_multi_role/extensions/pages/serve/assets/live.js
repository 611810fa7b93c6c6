// What the pages do by themselves. Without it everything is there, too: reload the page for what is new.
"use strict";

const LINES_KEPT = 1000;
const AT_END_PIXELS = 40;
const LIVING = ["running", "waiting", "queued"];

function seconds(text) {
  const whole = Math.round(text);
  if (whole < 60) return Math.round(text * 10) < 100 ? `${Number(text).toFixed(1)} s` : `${whole} s`;
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

// What an element is in the next version of its part, too.
const keyOf = (each) => each.id || each.getAttribute("href") || each.querySelector("summary")?.textContent || each.textContent;

// Put new content into an element; what was typed, opened and focused in it stays.
function replace(element, html) {
  const typed = new Map();
  for (const field of element.querySelectorAll("textarea[id], input[id], select[id]")) typed.set(field.id, [field.value, field.checked]);
  const opened = new Map([...element.querySelectorAll("details")].map((each) => [keyOf(each), [each.open, each.querySelector(":scope > ul")]]));
  const scrolled = [...element.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  const start = focused && "selectionStart" in focused ? focused.selectionStart : null;
  element.innerHTML = html; // made by our own templates, which escape all that they fill in
  for (const [id, [value, checked]] of typed) {
    const field = byId(id);
    if (field && (field.tagName !== "SELECT" || [...field.options].some((option) => option.value === value))) Object.assign(field, field.type === "checkbox" ? { checked } : { value });
  }
  for (const each of element.querySelectorAll("details")) {
    const [isOpen, list] = opened.get(keyOf(each)) ?? [each.open];
    each.open = isOpen;
    if (isOpen && list && each.querySelector(":scope > noscript")) each.append(list); // until it is loaded again
  }
  element.querySelectorAll(".scroll").forEach((each, place) => { each.scrollLeft = scrolled[place] ?? 0; });
  if (focused) {
    const again = [...element.querySelectorAll("a, summary, button, [id]")].find((each) => keyOf(each) === keyOf(focused)) || element.querySelector("h2");
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
  const connection = byId("connection");
  const announce = byId("announce");

  function append(lines) {
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < AT_END_PIXELS;
    const fragment = document.createDocumentFragment();
    for (const [text, role, level] of lines.slice(-LINES_KEPT)) {
      const paragraph = Object.assign(document.createElement("p"), { textContent: text, className: level });
      paragraph.dataset.role = role;
      paragraph.hidden = !fits(paragraph);
      fragment.append(paragraph);
      if (role && ![...roles.options].some((each) => each.value === role)) roles.add(new Option(role));
    }
    log.append(fragment);
    while (log.childElementCount > LINES_KEPT) log.firstElementChild.remove();
    if (atEnd) log.scrollTop = log.scrollHeight;
  }

  // ---- which lines of the log are shown, as the address says

  const filter = byId("log-filter");
  const [text, roles, level] = ["text", "role", "level"].map((name) => filter.elements[name]);
  const LEVELS = ["detail", "info", "problem"];

  function fits(line) {
    return (!roles.value || line.dataset.role === roles.value) && LEVELS.indexOf(line.className) >= LEVELS.indexOf(level.value)
      && line.textContent.toLowerCase().includes(text.value.toLowerCase());
  }

  function refilter(event) {
    event.preventDefault();
    event.stopPropagation(); // nothing is sent
    remember(Object.fromEntries([text, roles, level].map((field) => [field.name, field.value])));
    for (const line of log.children) line.hidden = !fits(line);
    log.scrollTop = log.scrollHeight;
  }
  filter.addEventListener("input", refilter);
  filter.addEventListener("submit", refilter);

  function take(event) {
    const news = JSON.parse(event.data);
    last = Number(event.lastEventId);
    append(news.lines);
    for (const part of news.parts) {
      const element = byId(part.name);
      if (element.dataset.version === part.version) continue;
      replace(element, part.html);
      element.dataset.version = part.version;
      if (part.name === "tree") renew();
    }
    if (news.status !== status) {
      status = news.status;
      connection.textContent = LIVING.includes(status) ? "live" : "";
      document.title = title.replace(/^\S+/, news.symbol);
      byId("icon").href = `/static/icon-${news.tone || "idle"}.svg`;
      announce.textContent = news.said;
    }
    tick();
  }

  function open() {
    if (source) return;
    const known = [...document.querySelectorAll("[data-version]")].map((each) => each.dataset.version);
    source = new EventSource(`${log.dataset.stream}?after=${last}&known=${known}`);
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

// ---- the turn beside the tree: chosen in the tree or the timeline, and in the address

const panel = byId("panel");
const shown = () => panel.querySelector("[data-entry]")?.dataset.entry ?? "";

function mark() {
  for (const each of document.querySelectorAll(".tree a.leaf")) {
    if (each.dataset.target === shown()) each.setAttribute("aria-current", "true");
    else each.removeAttribute("aria-current");
  }
}

// What the server says of the run, or null if it is gone.
async function ask(what, names) {
  const answer = await fetch(`${panel.dataset.source}/${what}?${new URLSearchParams(names)}`).catch(() => null);
  return answer?.ok ? answer : null;
}

async function load(entry) {
  const answer = await ask("panel", { at: entry });
  if (answer) replace(panel, await answer.text()); // as it was, if the server is gone
  mark();
  walk.highlight();
}

// Show an entry beside the tree, and where it is in it.
async function select(entry) {
  await load(entry);
  for (const id of JSON.parse(panel.querySelector("[data-within]")?.dataset.within ?? "[]")) {
    const branch = byId(`tree-${id}`);
    if (branch) await unfold(branch);
    if (branch) branch.open = true;
  }
}

// A closed branch is loaded when it is opened.
async function unfold(branch) {
  if (!branch.querySelector(":scope > noscript")) return;
  const answer = await ask("tree", { of: branch.id.replace("tree-", "") });
  if (answer) replace(branch, await answer.text());
  mark();
}

async function* find(text, kind) {
  for (let after = 0; after !== null;) {
    const answer = await ask("search", { text, kind, after });
    const { html, found, whole, next } = answer ? await answer.json() : { html: "", found: 0, whole: 0, next: null };
    yield { found, whole, isLast: next === null, show: () => byId("found").insertAdjacentHTML("beforeend", html) };
    after = next;
  }
}

async function openEntry(leaf) {
  if (leaf.tagName === "SUMMARY") return Object.assign(leaf.parentElement, { open: true });
  await chooseEntry(leaf.dataset.target);
  panel.scrollIntoView({ block: "nearest" });
  return panel;
}

function chooseEntry(target) {
  remember({ done: "", at: target }, "pushState");
  return select(target);
}

// Put what is chosen into the address.
function remember(names, change = "replaceState") {
  const address = new URL(location.href);
  for (const [name, value] of Object.entries(names)) value ? address.searchParams.set(name, value) : address.searchParams.delete(name);
  history[change](null, "", address);
}

// The tree is new: so may be what an open turn has.
function renew() {
  if (!shown() || panel.querySelector("[data-live]")) load(shown());
  else mark();
}

async function choose(event) {
  const target = event.target.closest("[data-target]")?.dataset.target;
  if (!target || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  await chooseEntry(target);
  panel.querySelector("h2").focus({ preventScroll: true });
  panel.querySelector("h2").scrollIntoView({ block: "nearest" });
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
  const known = byId(`on.${place}`);
  if (!line && !known) return; // a line that is not shown: the server makes its place
  event.preventDefault();
  if (!known) {
    const row = byId("boxed").content.querySelector("tr").cloneNode(true);
    const [side, number, ...path] = place.split(":");
    Object.assign(row.querySelector("label"), { htmlFor: `on.${place}`, textContent: `${path.join(":")}, ${side === "after" ? "line" : "old line"} ${number}` });
    Object.assign(row.querySelector("textarea"), { id: `on.${place}`, name: `on.${place}` });
    line.closest("tr").after(row);
  }
  byId(`on.${place}`).focus();
});

// The keyboard comes to the first line of a file, and goes from line to line by arrows.
document.addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const line = by && event.target.closest(".no button");
  if (!line) return;
  const lines = [...line.closest("table").querySelectorAll(".no button")];
  const next = lines[lines.indexOf(line) + by];
  event.preventDefault();
  if (!next) return;
  [line.tabIndex, next.tabIndex] = [-1, 0];
  next.focus();
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

const log = byId("log");
const list = byId("list");
const walk = panel && walkEntries({
  all: () => [...document.querySelectorAll(".tree a.leaf, .tree details:not([open]) > summary")].filter((each) => each.checkVisibility()),
  find,
  forget: () => byId("found").replaceChildren(),
  open: openEntry,
  shown: () => [panel],
  changed: (find, kind) => remember({ find, kind }),
});
if (log) followRun(log);
if (panel) {
  mark();
  for (const [id, name] of [["search", "find"], ["kind", "kind"]]) byId(id).value = new URL(location.href).searchParams.get(name) ?? "";
  if (byId("search").value || byId("kind").value) walk.look();
  document.addEventListener("click", choose);
  byId("tree").addEventListener("toggle", (event) => event.target.open && unfold(event.target), true);
  window.addEventListener("popstate", () => select(new URL(location.href).searchParams.get("at") ?? ""));
}
if (list) reloadList(list);
tick();
setInterval(tick, 1000);
