(() => {
  const entries = [...document.querySelectorAll(".entry")];
  const AROUND = 70;
  const texts = new Map();

  function textOf(entry) {
    if (!texts.has(entry)) texts.set(entry, [entry.textContent, entry.textContent.toLowerCase()]);
    return texts.get(entry);
  }

  async function find(wanted) {
    const found = new Map();
    for (const entry of entries) {
      const [text, lowered] = textOf(entry);
      const place = lowered.indexOf(wanted.toLowerCase());
      const end = place + wanted.length;
      if (place >= 0) found.set(entry.id, [`${place > AROUND ? "… " : ""}${text.slice(Math.max(0, place - AROUND), place)}`, text.slice(place, end), `${text.slice(end, end + AROUND)} …`]);
    }
    return found;
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

  const { visible, goTo, highlight, clear } = walkEntries({
    all: () => entries,
    find,
    open: (entry, isOpen) => Object.assign(entry, { open: isOpen }),
    shown: () => entries.filter((entry) => entry.open && !entry.hidden).map((entry) => entry.querySelector(".body")),
    keys: { t: nextTheme },
  });

  function follow(id) {
    const entry = byId(id);
    if (!entry?.classList.contains("entry")) return;
    if (entry.hidden) clear();
    entry.open = true;
    goTo(entry);
  }

  byId("what-happened").addEventListener("toggle", (event) => {
    if (event.target.classList.contains("entry") && event.target.open) highlight();
  }, true);
  byId("lanes")?.addEventListener("click", (event) => {
    const target = event.target.dataset.target;
    if (target) { history.replaceState(null, "", `#${encodeURIComponent(target)}`); follow(target); }
  });
  byId("theme").addEventListener("click", nextTheme);
  byId("open-all").addEventListener("click", () => { for (const entry of visible()) entry.open = true; highlight(); });
  byId("close-all").addEventListener("click", () => entries.forEach((entry) => { entry.open = false; }));
  window.addEventListener("hashchange", () => follow(decodeURIComponent(location.hash.slice(1))));
  byId("copy")?.addEventListener("click", async () => {
    await navigator.clipboard.writeText(byId("next-command").textContent);
    byId("copy").textContent = "Copied";
  });

  const kept = stored();
  setTheme(kept && kept in THEMES ? kept : "");
  for (const id of ["open-all", "close-all"]) byId(id).hidden = !entries.length;
  if (byId("copy") && navigator.clipboard) byId("copy").hidden = false;
  if (location.hash) follow(decodeURIComponent(location.hash.slice(1)));
})();
