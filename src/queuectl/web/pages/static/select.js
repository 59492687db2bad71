// Select jobs of a list: all of the page with one click, a range with shift, and show the number.
import { onSwap } from "./swap.js";

let last = null;

export function start() {
  if (!document.getElementById("selection")) return;
  document.addEventListener("click", onClick);
  onSwap(count);
  count();
}

const boxes = () => [...document.querySelectorAll("#selection input[name=id]")];

function onClick(event) {
  const box = event.target;
  if (!(box instanceof HTMLInputElement) || !box.closest("#selection")) return;
  if (box.dataset.tickAll !== undefined) for (const one of boxes()) one.checked = box.checked;
  if (box.name === "id") {
    const all = boxes();
    if (event.shiftKey && last) {
      const [from, to] = [all.indexOf(last), all.indexOf(box)].sort((a, b) => a - b);
      if (from >= 0) for (const one of all.slice(from, to + 1)) one.checked = box.checked;
    }
    last = box;
  }
  count();
}

function count() {
  const all = boxes();
  const ticked = all.filter((one) => one.checked).length;
  const head = document.querySelector("[data-tick-all]");
  if (head) {
    head.hidden = false;
    head.checked = ticked > 0 && ticked === all.length;
    head.indeterminate = ticked > 0 && ticked < all.length;
  }
  const every = document.querySelector("[data-all]")?.checked;
  const words = document.querySelector("[data-ticked]");
  if (words) words.textContent = every ? "" : `${ticked} selected`;
}
