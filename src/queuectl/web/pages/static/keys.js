// Keyboard shortcuts: g and a letter for a page, / to search, n for a new job, p to pause live updates, j k x in lists, ? for help.
import { help } from "./forms.js";
import { togglePause } from "./live.js";
import { onSwap } from "./swap.js";

let goneAt = -Infinity; // when g was pressed
let marked = null; // the URL of the row selected with j and k: the row element may be replaced at any time

export function start() {
  document.addEventListener("keydown", onKey);
  onSwap(mark);
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const active = document.activeElement;
  if (active?.matches("input:not([type=checkbox]):not([type=radio]), textarea, select")) {
    if (event.key === "Escape") active.blur();
    return;
  }
  if (document.querySelector("dialog[open]")) return;
  const goes = performance.now() - goneAt < 1200;
  goneAt = -Infinity;
  if (goes) {
    const link = document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`);
    if (link) event.preventDefault(), link.click();
    return;
  }
  const action = {
    g: () => (goneAt = performance.now()),
    "/": () => document.getElementById("find")?.focus(),
    n: () => document.querySelector("a[data-key=n]")?.click(),
    p: togglePause,
    "?": help,
    j: () => step(1),
    k: () => step(-1),
    x: () => here()?.querySelector("input[name=id]")?.click(),
  }[event.key];
  if (action) event.preventDefault(), action();
}

const rows = () => [...document.querySelectorAll("table.rows tbody tr")];
const address = (row) => row.querySelector("a")?.getAttribute("href");
const here = () => marked && rows().find((row) => address(row) === marked);

function mark() {
  for (const row of rows()) row.toggleAttribute("data-here", address(row) === marked);
}

function step(by) {
  const all = rows();
  if (!all.length) return;
  const at = all.indexOf(here());
  const next = all[Math.min(all.length - 1, Math.max(0, at < 0 ? 0 : at + by))];
  marked = address(next);
  mark();
  next.querySelector("a")?.focus();
}
