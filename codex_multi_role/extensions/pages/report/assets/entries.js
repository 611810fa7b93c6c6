"use strict";
// Search, kinds and keys over what happened in a run: the rows of the report, the leaves of the live page's tree.
const byId = (id) => document.getElementById(id);
const AT_ONCE_MS = 12;
const pause = () => new Promise((done) => setTimeout(done)); // a page that works for long stays usable

// `all`: the entries that can be walked through now; `find`: yields bit by bit how many have a text and are of a kind,
// of how many, and what shows them; `forget`: hides what was found; `open`: shows or hides an entry, and returns where;
// `shown`: the elements in which matches are marked; `changed`: is called with what was chosen.
function walkEntries({ all, find, forget, open, shown, changed = () => {} }) {
  let current = null;
  let search = null;
  const wantedNow = () => byId("search").value.trim();
  const unfiltered = byId("count").textContent;

  async function look() {
    const [wanted, kind] = [wantedNow(), byId("kind").value];
    const mine = search = {};
    current = null;
    forget();
    changed(wanted, kind);
    document.body.classList.toggle("filtered", Boolean(wanted || kind));
    byId("count").textContent = wanted || kind ? "searching …" : unfiltered;
    if (!wanted && !kind) return highlight();
    let count = 0;
    for await (const { found, show, whole, isLast } of find(wanted, kind)) {
      if (mine !== search) return; // typed on meanwhile
      show();
      count += found;
      const of = `${count.toLocaleString("en")} of ${whole.toLocaleString("en")} ${whole === 1 ? "entry" : "entries"}`;
      byId("count").textContent = isLast ? of : `${of} …`;
    }
    highlight();
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

  function goTo(entry) {
    current = entry;
    (entry.querySelector("summary") ?? entry).focus({ preventScroll: true });
    entry.scrollIntoView({ block: entry.open ? "start" : "center", behavior: "instant" });
  }

  function step(by) {
    const among = all();
    let next = current ? among.indexOf(current) + by : by > 0 ? 0 : among.length - 1;
    if (current && !among.includes(current)) { // a branch that was opened
      const after = among.findIndex((entry) => current.compareDocumentPosition(entry) & Node.DOCUMENT_POSITION_FOLLOWING);
      next = (after < 0 ? among.length : after) - (by < 0);
    }
    if (among.length) goTo(among[Math.min(among.length - 1, Math.max(0, next))]);
  }

  async function openFound() {
    const among = all();
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
    const entry = event.target.closest(".entry, a.leaf, #tree summary");
    if (all().includes(entry)) current = entry;
  });
  let waiting = 0;
  byId("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(look, 120); });
  byId("kind").addEventListener("change", look);
  byId("help-button").addEventListener("click", KEYS["?"]);
  byId("tools").hidden = false;
  return { goTo, highlight, look, clear };
}
