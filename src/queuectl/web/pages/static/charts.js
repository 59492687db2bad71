// Read single values of a chart: with the pointer, or with the arrow keys. All charts of a page show the same moment, in the zone of the
// reader. Without this script, the browser shows the title of a bar, in UTC.
import { onSwap } from "./swap.js";

let shown = null; // ms

export function start() {
  document.addEventListener("pointermove", (event) => {
    const area = event.target.closest?.("[data-plot] .area");
    if (area) point(area, event.clientX);
    else if (shown !== null && !document.activeElement?.matches("[data-plot]")) show(null);
  });
  document.addEventListener("keydown", onKey);
  document.addEventListener("focusout", (event) => event.target.matches("[data-plot]") && show(null));
  onSwap(render);
  render();
}

const readings = (plot) => [...plot.querySelectorAll(".reading")];
const at = (one) => Number(one.dataset.at);

function point(area, clientX) {
  const box = area.getBoundingClientRect();
  const x = ((clientX - box.left) / box.width) * 600;
  const found = readings(area).find((one) => x >= one.x.baseVal.value && x <= one.x.baseVal.value + one.width.baseVal.value);
  show(found ? at(found) : null);
}

function onKey(event) {
  const plot = event.target.closest?.("[data-plot]");
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const all = plot ? readings(plot) : [];
  if (!all.length || !(step || ["Home", "End", "Escape"].includes(event.key))) return;
  event.preventDefault();
  const here = all.findIndex((one) => at(one) === shown);
  const next = { Home: 0, End: all.length - 1 }[event.key] ?? (here < 0 ? all.length - 1 : here + step);
  show(event.key === "Escape" ? null : at(all[Math.min(all.length - 1, Math.max(0, next))]));
}

function show(moment) {
  if (moment === shown) return;
  shown = moment;
  render();
}

function render() {
  for (const plot of document.querySelectorAll("[data-plot]")) {
    const one = shown === null ? null : readings(plot).find((reading) => at(reading) === shown);
    const x = one && one.x.baseVal.value + one.width.baseVal.value / 2;
    plot.querySelector(".cross").setAttribute("d", one ? `M${x} 0V120` : "");
    plot.querySelector("[data-readout]").textContent = one ? `${clock(shown, true)} · ${one.dataset.text}` : "";
  }
  for (const tick of document.querySelectorAll(".x-axis [data-at]"))
    if (tick.textContent.includes(":")) tick.textContent = clock(at(tick));
  for (const title of document.querySelectorAll(".reading title")) title.remove(); // the readout replaces it
}

function clock(ms, isWhole = false) {
  const moment = new Date(ms);
  const isRecent = Math.abs(Date.now() - ms) < 12 * 3600 * 1000;
  const day = isWhole && !isRecent ? { month: "short", day: "numeric" } : {};
  return moment.toLocaleString("en", { ...day, hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
}
