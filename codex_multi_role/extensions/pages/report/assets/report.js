(() => {
  const entries = [...document.querySelectorAll(".entry")];
  const AROUND = 70;
  const TOLD_MS = 250;
  const ESCAPED = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#39;", '"': "&#34;" };
  const KINDS = {
    "": "*",
    turn: "[id^=turn-]",
    check: "[id^=tests-], [id^=check-]",
    question: "[id^=question-]",
    problem: "[data-tone=bad], [data-tone=warn], :has(> summary .chip.bad)",
  };
  const keptIn = (details) => details.querySelector(":scope > noscript");
  const isIn = (text, wanted) => text.toLowerCase().includes(wanted.toLowerCase());

  // Closed entries and branches are kept as text: a page of many turns would take long to load.
  function unfold(details) {
    const kept = keptIn(details);
    if (kept) kept.outerHTML = kept.textContent; // made by our own templates, which escape all that they fill in
  }

  function excerpt(entry, wanted) {
    const [summary, body] = [entry.firstElementChild.textContent, entry.lastElementChild.textContent];
    const kept = keptIn(entry);
    const escaped = kept ? wanted.replace(/[&<>'"]/g, (letter) => ESCAPED[letter]) : wanted;
    if (!isIn(summary, wanted) && !isIn(body, escaped)) return null; // nothing is parsed in vain
    const text = summary + (kept ? new DOMParser().parseFromString(body, "text/html").body.textContent : body);
    const place = text.toLowerCase().indexOf(wanted.toLowerCase());
    if (place < 0) return null;
    const end = place + wanted.length;
    const shown = Object.assign(document.createElement("span"), { className: "found" });
    const match = Object.assign(document.createElement("mark"), { textContent: text.slice(place, end) });
    shown.append(`${place > AROUND ? "… " : ""}${text.slice(Math.max(0, place - AROUND), place)}`, match, `${text.slice(end, end + AROUND)} …`);
    return shown;
  }

  async function* find(wanted, kind) {
    let [began, told, matches] = [performance.now(), performance.now(), []];
    const news = (isLast) => {
      const [found, show] = [matches, ([entry, shown]) => { entry.classList.add("match"); entry.firstElementChild.append(shown); }];
      [told, matches] = [performance.now(), []];
      return { found: found.length, show: () => found.forEach(show), whole: entries.length, isLast };
    };
    for (const entry of entries.filter((each) => each.matches(KINDS[kind]))) {
      const shown = wanted ? excerpt(entry, wanted) : "";
      if (shown !== null) matches.push([entry, shown]);
      if (performance.now() - began < AT_ONCE_MS) continue;
      if (performance.now() - told > TOLD_MS) yield news(false);
      await pause();
      began = performance.now();
    }
    yield news(true);
  }

  function forget() {
    for (const entry of document.querySelectorAll(".entry.match")) {
      entry.classList.remove("match");
      entry.querySelector(".found")?.remove();
    }
  }

  // ---- what is pressed and clicked

  const visible = () => (document.body.classList.contains("filtered") ? [...document.querySelectorAll(".entry.match")] : entries);

  function open(entry, isOpen) {
    if (isOpen) unfold(entry);
    return Object.assign(entry, { open: isOpen });
  }

  const { goTo, highlight, clear } = walkEntries({
    all: visible,
    find,
    forget,
    open,
    shown: () => document.querySelectorAll(".entry[open] > .body"),
  });

  function follow(id) {
    const entry = (byId(id) ?? entries.find((each) => keptIn(each)?.textContent.includes(`id="${id}"`)))?.closest(".entry");
    if (!entry) return;
    if (!visible().includes(entry)) clear();
    open(entry, true);
    goTo(entry);
    if (byId(id) !== entry) Object.assign(byId(id), { open: true }).scrollIntoView({ behavior: "instant" });
  }

  byId("what-happened").addEventListener("toggle", (event) => {
    if (!event.target.open) return;
    unfold(event.target);
    if (event.target.classList.contains("entry")) highlight();
  }, true);
  byId("lanes")?.addEventListener("click", (event) => {
    const target = event.target.dataset.target;
    if (target) { history.replaceState(null, "", `#${encodeURIComponent(target)}`); follow(target); }
  });
  byId("open-all").addEventListener("click", () => { for (const entry of visible()) open(entry, true); highlight(); });
  byId("close-all").addEventListener("click", () => entries.forEach((entry) => { entry.open = false; }));
  window.addEventListener("hashchange", () => follow(decodeURIComponent(location.hash.slice(1))));
  byId("copy")?.addEventListener("click", async () => {
    await navigator.clipboard.writeText(byId("next-command").textContent);
    byId("copy").textContent = "Copied";
  });

  for (const id of ["open-all", "close-all"]) byId(id).hidden = !entries.length;
  if (byId("copy") && navigator.clipboard) byId("copy").hidden = false;
  if (location.hash) follow(decodeURIComponent(location.hash.slice(1)));
})();
