// Select jobs of a list: all of the page with one click, a range with shift. A bar with the actions that fit appears.
import { requestUpdate } from "./live.js";
import { onSwap } from "./swap.js";

let last = null;

export function start() {
  if (!document.getElementById("selection")) return;
  document.addEventListener("click", onClick);
  window.addEventListener("pageshow", count); // browsers restore the boxes of a page in their history
  onSwap(count);
  count();
}

const boxes = () => [...document.querySelectorAll("#selection input[name=id]")];

function onClick(event) {
  const box = event.target;
  if (!(box instanceof HTMLElement) || !box.closest("#selection")) return;
  if (box.dataset.clear !== undefined) {
    clear();
    requestUpdate();
  }
  if (!(box instanceof HTMLInputElement)) return;
  if (box.dataset.tickAll !== undefined) for (const one of boxes()) one.checked = box.checked;
  if (box.dataset.all !== undefined && box.checked) for (const one of boxes()) one.checked = true;
  if (box.name === "id") {
    const all = boxes();
    if (event.shiftKey && last) {
      const [from, to] = [all.indexOf(last), all.indexOf(box)].sort((a, b) => a - b);
      if (from >= 0) for (const one of all.slice(from, to + 1)) one.checked = box.checked;
    }
    last = box;
  }
  if (box.dataset.all === undefined && !box.checked) every().checked = false;
  count();
}

/** Deselect all jobs. */
export function clear() {
  for (const one of document.querySelectorAll("#selection input:checked")) one.checked = false;
  count();
}

const every = () => document.querySelector("[data-all]");

function count() {
  const bar = document.querySelector("[data-bulk]");
  if (!bar) return;
  const all = boxes();
  const ticked = all.filter((one) => one.checked);
  const head = document.querySelector("[data-tick-all]");
  if (head) {
    head.hidden = false;
    head.checked = ticked.length > 0 && ticked.length === all.length;
    head.indeterminate = ticked.length > 0 && ticked.length < all.length;
  }
  const isAll = every().checked;
  const fit = new Set(ticked.flatMap((one) => one.dataset.verbs.split(" ")));
  for (const button of bar.querySelectorAll("button[name=action]")) button.hidden = !isAll && !fit.has(button.value);
  for (const one of bar.querySelectorAll("[data-clear], [data-paused]")) one.hidden = false;
  bar.hidden = !ticked.length && !isAll;
  bar.querySelector("[data-ticked]").textContent = isAll ? "All matching" : `${ticked.length} selected`;
}
