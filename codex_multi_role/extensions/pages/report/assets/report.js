"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const entries = [...document.querySelectorAll(".entry")];
  const AROUND = 70;

  // ---- search and filter

  const texts = new Map();

  function textOf(entry) {
    if (!texts.has(entry)) texts.set(entry, entry.textContent);
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
    const found = Object.assign(document.createElement("mark"), { textContent: text.slice(place, place + wanted.length) });
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
    entry.open = true;
    highlight();
    current = entry;
    const first = [...(CSS.highlights?.get("found") ?? [])].find((range) => entry.contains(range.startContainer));
    (first?.startContainer.parentElement ?? entry).scrollIntoView({ block: "center", behavior: "instant" });
  }

  function follow(id) {
    const entry = byId(id);
    if (!entry?.classList.contains("entry")) return;
    if (entry.hidden) clear();
    entry.open = true;
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
    o: () => { if (current) current.open = !current.open; },
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
    if (event.target.classList.contains("entry") && event.target.open && wantedNow()) highlight();
  }, true);
  byId("entries").addEventListener("focusin", (event) => { current = event.target.closest(".entry") ?? current; });
  byId("lanes")?.addEventListener("click", (event) => {
    const target = event.target.dataset.target;
    if (target) { history.replaceState(null, "", `#${encodeURIComponent(target)}`); follow(target); }
  });
  let waiting = 0;
  byId("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => { current = null; look(); }, 120); });
  byId("kind").addEventListener("change", look);
  byId("theme").addEventListener("click", nextTheme);
  byId("help-button").addEventListener("click", KEYS["?"]);
  byId("open-all").addEventListener("click", () => { for (const entry of visible()) entry.open = true; highlight(); });
  byId("close-all").addEventListener("click", () => entries.forEach((entry) => { entry.open = false; }));
  window.addEventListener("hashchange", () => follow(decodeURIComponent(location.hash.slice(1))));
  byId("copy")?.addEventListener("click", async () => {
    await navigator.clipboard.writeText(byId("next-command").textContent);
    byId("copy").textContent = "Copied";
  });

  const kept = stored();
  setTheme(kept && kept in THEMES ? kept : "");
  byId("tools").hidden = false;
  for (const id of ["open-all", "close-all"]) byId(id).hidden = !entries.length;
  if (byId("copy") && navigator.clipboard) byId("copy").hidden = false;
  if (location.hash) follow(decodeURIComponent(location.hash.slice(1)));
})();
