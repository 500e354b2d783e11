"use strict";
(() => {
  const get = (id) => document.getElementById(id);
  const bar = get("bar"), list = get("list"), count = get("count"), more = get("more");
  if (!list) return;
  const find = get("find"), stratum = get("stratum"), state = get("state"), criterion = get("criterion");
  const PAGE = 200;
  let page = PAGE;
  const cases = Array.from(list.children, (el) => ({
    el, stratum: el.dataset.s, marks: el.dataset.m ? el.dataset.m.split(" ") : [], text: "",
  }));
  const textOf = (c) => (c.text ||= c.el.textContent.toLowerCase());

  function wanted() {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const letter = state.value || (criterion.value ? "a" : "");
    const number = criterion.value;
    return (c) =>
      (!stratum.value || c.stratum === stratum.value) &&
      (!letter || c.marks.some((m) => m[0] === letter && (!number || m.slice(1) === number))) &&
      words.every((word) => textOf(c).includes(word));
  }

  function show() {
    const matching = cases.filter(wanted());
    const on = new Set(matching.slice(0, page));
    for (const c of cases) {
      const hidden = !on.has(c);
      if (c.el.hidden !== hidden) c.el.hidden = hidden;
    }
    const of = matching.length === cases.length ? "" : ` of ${cases.length}`;
    const first = on.size < matching.length ? `, the first ${on.size} listed` : "";
    count.textContent = `${matching.length}${of} cases${first}`;
    more.hidden = on.size >= matching.length;
    return matching;
  }

  function restart() {
    page = PAGE;
    show();
  }

  function clear() {
    for (const control of [find, stratum, state, criterion]) control.value = "";
    restart();
  }

  function open() {
    let target = null;
    try {
      target = get(decodeURIComponent(location.hash.slice(1)));
    } catch {
      return; // not an address of ours
    }
    const el = target && target.closest(".case");
    if (!el) return;
    if (el.hidden) {
      for (const control of [find, stratum, state, criterion]) control.value = "";
      page = Math.max(PAGE, cases.findIndex((c) => c.el === el) + 1);
      show();
    }
    el.open = true;
    el.scrollIntoView();
    el.firstElementChild.focus({ preventScroll: true });
  }

  function step(by) {
    const on = cases.filter((c) => !c.el.hidden).map((c) => c.el);
    const at = on.findIndex((el) => el.contains(document.activeElement));
    const next = on[at < 0 ? (by > 0 ? 0 : on.length - 1) : at + by];
    if (!next) return;
    next.firstElementChild.focus();
    next.scrollIntoView({ block: "nearest" });
  }

  const KEYS = {
    j: () => step(1),
    k: () => step(-1),
    "/": () => find.focus(),
    x: clear,
    o: () => {
      const el = document.activeElement.closest(".case");
      if (el) el.open = !el.open;
    },
  };

  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "Escape" && typing) event.target.blur();
    if (typing || !get("keys").checked || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!Object.hasOwn(KEYS, event.key)) return;
    event.preventDefault();
    KEYS[event.key]();
  });
  for (const control of [stratum, state, criterion]) control.addEventListener("change", restart);
  find.addEventListener("input", restart);
  get("clear").addEventListener("click", clear);
  more.addEventListener("click", () => {
    page += PAGE;
    show();
  });
  window.addEventListener("hashchange", open);
  bar.hidden = get("help").hidden = false;
  show();
  open();

  // The texts are read while nobody waits, so that the first search is as quick as the next.
  let next = 0;
  const idle = window.requestIdleCallback || ((work) => setTimeout(() => work({ timeRemaining: () => 8 }), 20));
  const read = (time) => {
    while (next < cases.length && time.timeRemaining() > 2) textOf(cases[next++]);
    if (next < cases.length) idle(read);
  };
  idle(read);
})();
