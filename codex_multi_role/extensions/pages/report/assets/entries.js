"use strict";
// Search, kinds and keys over what happened in a run: the rows of the report, the leaves of the live page's tree.
const byId = (id) => document.getElementById(id);
const KINDS = { turn: ["turn"], check: ["tests", "check"], question: ["question"] };
const idOf = (entry) => entry.dataset.target ?? entry.id;

// `all`: the entries now; `find`: by id what is before, in and after the first match of a text; `open`: shows or hides
// an entry, and returns where; `shown`: the elements in which matches are marked; `keys`: more of them; `changed`: is
// called with what was chosen.
function walkEntries({ all, find, open, shown, keys = {}, changed = () => {} }) {
  let current = null;
  let found = new Map();
  const wantedNow = () => byId("search").value.trim();
  const visible = () => all().filter((entry) => !entry.hidden);

  const isProblem = (entry) => ["bad", "warn"].includes(entry.dataset.tone)
    || entry.querySelector("summary .chip.bad, .sign.bad, .sign.warn") !== null;
  const fits = (entry, kind) => !kind || (kind === "problem" ? isProblem(entry) : KINDS[kind].includes(idOf(entry).split("-")[0]));

  function excerpt([before, text, after]) {
    const shown = Object.assign(document.createElement("span"), { className: "found" });
    shown.append(before, Object.assign(document.createElement("mark"), { textContent: text }), after);
    return shown;
  }

  function filter() {
    const kind = byId("kind").value;
    const wanted = wantedNow();
    const entries = all();
    let count = 0;
    for (const entry of entries) {
      const match = found.get(idOf(entry));
      entry.hidden = !(fits(entry, kind) && (!wanted || match));
      count += !entry.hidden;
      if (!entry.hidden && (wanted || kind)) reveal(entry);
      entry.querySelector(".found")?.remove();
      if (!entry.hidden && wanted) (entry.querySelector("summary") ?? entry).append(excerpt(match));
    }
    const whole = `${entries.length.toLocaleString("en")} ${entries.length === 1 ? "entry" : "entries"}`;
    byId("count").textContent = wanted || kind ? `${count.toLocaleString("en")} of ${whole}` : whole;
    document.body.classList.toggle("filtered", Boolean(wanted || kind));
    highlight();
  }

  async function look() {
    const wanted = wantedNow();
    const matches = wanted ? await find(wanted) : new Map();
    if (wanted !== wantedNow()) return; // typed on meanwhile
    [current, found] = [null, matches];
    filter();
    changed(wanted, byId("kind").value);
  }

  function highlight() {
    if (!window.CSS?.highlights) return;
    CSS.highlights.delete("found");
    const wanted = wantedNow().toLowerCase();
    if (!wanted) return;
    const ranges = [];
    for (const element of shown()) {
      const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node; node = walker.nextNode()) mark(node, wanted, ranges);
    }
    CSS.highlights.set("found", new Highlight(...ranges));
  }

  function mark(node, wanted, ranges) {
    const text = node.data.toLowerCase();
    for (let at = text.indexOf(wanted); at >= 0 && ranges.length < 5000; at = text.indexOf(wanted, at + wanted.length)) {
      const range = document.createRange();
      range.setStart(node, Math.min(at, node.length));
      range.setEnd(node, Math.min(at + wanted.length, node.length));
      ranges.push(range);
      node.parentElement.closest(".part")?.setAttribute("open", "");
    }
  }

  function reveal(entry) {
    for (let above = entry.parentElement.closest("details"); above; above = above.parentElement.closest("details")) above.open = true;
  }

  function goTo(entry) {
    current = entry;
    reveal(entry);
    (entry.querySelector("summary") ?? entry).focus({ preventScroll: true });
    entry.scrollIntoView({ block: entry.open ? "start" : "center", behavior: "instant" });
  }

  function step(by) {
    const among = visible();
    const place = among.indexOf(current);
    const next = place < 0 ? (by > 0 ? 0 : among.length - 1) : Math.min(among.length - 1, Math.max(0, place + by));
    if (among.length) goTo(among[next]);
  }

  async function openFound() {
    const among = visible();
    const entry = among[(among.indexOf(current) + 1) % among.length];
    if (!entry) return;
    current = entry;
    const place = await open(entry, true);
    highlight();
    const first = [...(CSS.highlights?.get("found") ?? [])].find((range) => place.contains(range.startContainer));
    (first?.startContainer.parentElement ?? entry).scrollIntoView({ block: "center", behavior: "instant" });
  }

  function clear() {
    byId("search").value = "";
    byId("kind").value = "";
    look();
  }

  const KEYS = {
    j: () => step(1),
    k: () => step(-1),
    o: () => { if (current) open(current, !current.open); },
    "/": () => { byId("search").focus(); byId("search").select(); },
    "?": () => byId("help").showModal(),
    Escape: clear,
    ...keys,
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
    if (event.target.closest("input, select, textarea")) {
      if (event.target === byId("search") && event.key === "Enter") openFound();
      else if (event.target === byId("search") && event.key === "Escape") { clear(); event.target.blur(); }
      else return;
    } else if (KEYS[event.key]) KEYS[event.key]();
    else return;
    event.preventDefault();
  });
  document.addEventListener("focusin", (event) => {
    const entry = event.target.closest(".entry, a.leaf");
    if (all().includes(entry)) current = entry;
  });
  let waiting = 0;
  byId("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(look, 120); });
  byId("kind").addEventListener("change", look);
  byId("help-button").addEventListener("click", KEYS["?"]);
  byId("tools").hidden = false;
  return { visible, goTo, highlight, filter, look, clear };
}
