"use strict";
// Everything that a run said is put into the page as text, never as HTML.
(() => {
  const byId = (id) => document.getElementById(id);
  const entries = [...document.querySelectorAll(".entry")];
  const SHORT = 1500; // a longer prompt is closed at first
  const AROUND = 70;

  function make(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  }

  // ---- the parts of an entry

  const parts = (entry) => JSON.parse(entry.querySelector("script").textContent);
  const isFlat = (value) => value === null || typeof value !== "object";

  function tree(value) {
    if (typeof value === "string") return value.includes("\n") ? make("pre", {}, value) : make("span", {}, value);
    if (isFlat(value)) return make("span", {}, String(value));
    if (!Array.isArray(value)) return object(value);
    if (!value.length) return make("span", {}, "none");
    if (value.length > 1 && value.every((each) => !isFlat(each) && !Array.isArray(each))) return rows(value) ?? list(value);
    return list(value);
  }

  function object(value) {
    const pairs = Object.entries(value);
    if (!pairs.length) return make("span", {}, "none");
    return make("dl", {}, ...pairs.map(([name, each]) => make("div", {}, make("dt", {}, name), make("dd", {}, tree(each)))));
  }

  const list = (value) => make("ul", {}, ...value.map((each) => make("li", {}, tree(each))));

  // A list of small objects is a table.
  function rows(value) {
    const names = [...new Set(value.flatMap((each) => Object.keys(each)))];
    const short = (each) => isFlat(each) && !(typeof each === "string" && (each.includes("\n") || each.length > 120));
    const small = (each) => short(each) || (Array.isArray(each) && each.length < 9 && each.every(short));
    if (names.length > 6 || !value.every((each) => Object.values(each).every(small))) return null;
    return table(names, value.map((each) => names.map((name) => (Array.isArray(each[name]) ? each[name].join(", ") : each[name]))));
  }

  function table(names, cells) {
    const head = make("tr", {}, ...names.map((name) => make("th", { scope: "col" }, name)));
    const body = cells.map((row) => make("tr", {}, ...row.map((cell) => make("td", {}, cell instanceof Node ? cell : String(cell ?? "")))));
    return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": names.join(", ") },
      make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)));
  }

  const chip = (words, good) => make("span", { class: `chip ${good ? "good" : "bad"}` }, words);

  function diffKind(line, state) {
    if (line.startsWith("diff ")) { state.inside = false; return "file"; }
    if (line.startsWith("@@")) { state.inside = true; return "hunk"; }
    if (!state.inside) return "meta";
    return { "+": "add", "-": "del", "\\": "meta" }[line[0]] ?? "same";
  }

  function diff(text) {
    const state = { inside: false };
    const lines = text.replace(/\n$/, "").split("\n");
    return make("div", { class: "diff", tabindex: "0", role: "region", "aria-label": "Changes" },
      ...lines.map((line) => make("span", { class: diffKind(line, state) }, line)));
  }

  const shown = {
    text: (part) => make("pre", { tabindex: "0" }, part.text),
    diff: (part) => diff(part.text),
    tree: (part) => make("div", { class: "tree" }, tree(part.value)),
    details: (part) => make("div", { class: "tree" }, tree(part.value)),
    files: (part) => table(["file", "result", "bytes"], part.value.map((each) => [
      make("code", {}, String(each?.path ?? "")), [each?.status, each?.reason].filter(Boolean).join(": "), each?.bytes,
    ])),
    approvals: (part) => table(["decision", "asked for", "what"], part.value.map((each) => [each?.decision, each?.method, each?.detail])),
    calls: (part) => make("div", { class: "tree" }, make("dl", {}, ...part.value.map((each) => make("div", {},
      make("dt", {}, make("b", {}, String(each?.tool ?? "")), " ", chip(each?.success ? "answered" : "failed", each?.success)),
      make("dd", {}, tree(each?.arguments ?? null), make("pre", {}, String(each?.text ?? ""))))))),
  };
  const closedAtFirst = (part) => part.kind === "details" || (part.title === "Prompt" && part.text.length > SHORT);

  function draw(part) {
    const length = part.text === undefined ? null : `${part.text.length.toLocaleString("en")} characters`;
    const summary = make("summary", {}, make("h3", {}, part.title), length && make("small", {}, length), part.file && make("small", {}, part.file));
    const inside = make("div", { class: "inside" }, shown[part.kind](part));
    if (part.of) inside.append(make("p", { class: "cut" }, `Truncated. The full text (${part.of.toLocaleString("en")} bytes) is in ${part.file} in the run folder.`));
    const node = make("details", { class: "part" }, summary, inside);
    node.open = !closedAtFirst(part);
    return node;
  }

  function fill(entry) {
    const body = entry.querySelector(".body");
    if (body.childElementCount) return;
    const drawn = parts(entry).map(draw);
    body.append(...(drawn.length ? drawn : [make("p", { class: "cut" }, "No details were recorded.")]));
  }

  function open(entry) {
    fill(entry);
    entry.open = true;
  }

  // ---- search and filter

  const texts = new Map();

  function* strings(value) {
    if (typeof value === "string") yield value;
    else if (Array.isArray(value)) for (const each of value) yield* strings(each);
    else if (value && typeof value === "object") {
      for (const [name, each] of Object.entries(value)) { yield name; yield* strings(each); }
    } else if (value !== null && value !== undefined) yield String(value);
  }

  function textOf(entry) {
    if (!texts.has(entry)) {
      const said = parts(entry).flatMap((part) => [part.title, part.text ?? "", ...strings(part.value)]);
      texts.set(entry, [entry.querySelector("summary").textContent, ...said].join("\n"));
    }
    return texts.get(entry);
  }

  const lowered = new Map();
  function loweredOf(entry) {
    if (!lowered.has(entry)) lowered.set(entry, textOf(entry).toLowerCase());
    return lowered.get(entry);
  }

  const ofKind = (entry, kind) => !kind || entry.dataset.kind === kind
    || (kind === "problem" && ["bad", "warn"].includes(entry.dataset.tone))
    || (kind === "problem" && entry.querySelector("summary .chip.bad") !== null);

  function excerpt(entry, wanted) {
    const place = loweredOf(entry).indexOf(wanted);
    const text = textOf(entry);
    const found = make("mark", {}, text.slice(place, place + wanted.length));
    const before = text.slice(Math.max(0, place - AROUND), place);
    const after = text.slice(place + wanted.length, place + wanted.length + AROUND);
    return [place > AROUND ? "… " : "", before, found, after, " …"];
  }

  const wantedNow = () => byId("search").value.trim().toLowerCase();

  function look() {
    const wanted = wantedNow();
    const kind = byId("kind").value;
    let count = 0;
    for (const entry of entries) {
      const fits = ofKind(entry, kind) && (!wanted || loweredOf(entry).includes(wanted));
      entry.hidden = !fits;
      count += fits;
      const found = entry.querySelector(".found");
      found.hidden = !(fits && wanted);
      found.replaceChildren(...(fits && wanted ? excerpt(entry, wanted) : []));
    }
    const all = `${entries.length.toLocaleString("en")} ${entries.length === 1 ? "entry" : "entries"}`;
    byId("count").textContent = wanted || kind ? `${count.toLocaleString("en")} of ${all}` : all;
    highlight();
  }

  function highlight() {
    if (!window.CSS?.highlights) return;
    CSS.highlights.delete("found");
    const wanted = wantedNow();
    if (!wanted) return;
    const ranges = [];
    for (const entry of entries) {
      if (!entry.open || entry.hidden) continue;
      const walker = document.createTreeWalker(entry.querySelector(".body"), NodeFilter.SHOW_TEXT);
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

  // ---- going from entry to entry

  const visible = () => entries.filter((entry) => !entry.hidden);
  let current = null;

  function goTo(entry) {
    current = entry;
    const summary = entry.querySelector("summary");
    summary.focus({ preventScroll: true });
    entry.scrollIntoView({ block: entry.open ? "start" : "center", behavior: "instant" });
  }

  function step(by) {
    const among = visible();
    if (!among.length) return null;
    const place = among.indexOf(current);
    const next = place < 0 ? (by > 0 ? 0 : among.length - 1) : Math.min(among.length - 1, Math.max(0, place + by));
    goTo(among[next]);
    return among[next];
  }

  function openFound() {
    const among = visible();
    const place = among.indexOf(current);
    const entry = among[(place + 1) % among.length];
    if (!entry) return;
    open(entry);
    highlight();
    current = entry;
    const first = [...(CSS.highlights?.get("found") ?? [])].find((range) => entry.contains(range.startContainer));
    (first?.startContainer.parentElement ?? entry).scrollIntoView({ block: "center", behavior: "instant" });
  }

  function follow(id) {
    const entry = byId(id);
    if (!entry?.classList.contains("entry")) return;
    if (entry.hidden) clear();
    open(entry);
    goTo(entry);
  }

  function clear() {
    byId("search").value = "";
    byId("kind").value = "";
    look();
  }

  // ---- light and dark

  const THEMES = { "": ["Auto", "system setting"], light: ["Light", "light"], dark: ["Dark", "dark"] };

  function stored(value) {
    try {
      if (value === undefined) return localStorage.getItem("codex-multi-role-theme");
      localStorage.setItem("codex-multi-role-theme", value);
    } catch { /* a file that a browser gives no storage keeps nothing */ }
    return null;
  }

  function setTheme(theme) {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    byId("theme").textContent = THEMES[theme][0];
    byId("theme").setAttribute("aria-label", `Colours: ${THEMES[theme][1]}`);
  }

  function nextTheme() {
    const names = Object.keys(THEMES);
    const theme = names[(names.indexOf(document.documentElement.dataset.theme ?? "") + 1) % names.length];
    setTheme(theme);
    stored(theme);
  }

  // ---- what is pressed and clicked

  const KEYS = {
    j: () => step(1),
    k: () => step(-1),
    o: () => { if (current) current.open ? (current.open = false) : open(current); },
    "/": () => { byId("search").focus(); byId("search").select(); },
    t: nextTheme,
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

  byId("entries").addEventListener("toggle", (event) => {
    if (!event.target.classList.contains("entry") || !event.target.open) return;
    fill(event.target);
    if (wantedNow()) highlight();
  }, true);
  byId("entries").addEventListener("focusin", (event) => { current = event.target.closest(".entry") ?? current; });
  byId("lanes")?.addEventListener("click", (event) => {
    const target = event.target.dataset?.target;
    if (target) { history.replaceState(null, "", `#${encodeURIComponent(target)}`); follow(target); }
  });
  let waiting = 0;
  byId("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => { current = null; look(); }, 120); });
  byId("kind").addEventListener("change", look);
  byId("theme").addEventListener("click", nextTheme);
  byId("help-button").addEventListener("click", KEYS["?"]);
  byId("open-all").addEventListener("click", () => { visible().forEach(open); highlight(); });
  byId("close-all").addEventListener("click", () => entries.forEach((entry) => { entry.open = false; }));
  window.addEventListener("hashchange", () => follow(decodeURIComponent(location.hash.slice(1))));
  byId("copy")?.addEventListener("click", async () => {
    await navigator.clipboard.writeText(byId("next-command").textContent);
    byId("copy").textContent = "Copied";
  });

  const kept = stored();
  setTheme(kept && kept in THEMES ? kept : "");
  byId("tools").hidden = false;
  byId("no-script").hidden = true;
  for (const id of ["open-all", "close-all"]) byId(id).hidden = !entries.length;
  if (byId("copy") && navigator.clipboard) byId("copy").hidden = false;
  entries.filter((entry) => entry.open).forEach(fill); // a browser that goes back may have left some open
  if (location.hash) follow(decodeURIComponent(location.hash.slice(1)));
})();
