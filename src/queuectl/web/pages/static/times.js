// Update relative times like "3s ago", in the format of units.py, and show absolute times in the zone of the reader.
import { onSwap } from "./swap.js";

const UNITS = [[86400000, "d"], [3600000, "h"], [60000, "m"], [1000, "s"]];
let ahead = 0; // ms that the server's clock is ahead

export function start() {
  ahead = Number(document.body.dataset.now ?? Date.now()) - Date.now();
  setInterval(() => document.hidden || tick(), 1000);
  onSwap(localize);
  localize();
}

// The server writes UTC. This locale has the format 2026-01-31 23:59:59.
function localize() {
  for (const one of document.querySelectorAll("time[data-local]")) {
    const moment = new Date(one.dateTime);
    const zone = new Intl.DateTimeFormat("en", { timeZoneName: "short" }).formatToParts(moment).find((part) => part.type === "timeZoneName");
    one.title = `${zone.value}; ${one.textContent}`;
    one.textContent = moment.toLocaleString("sv");
    one.removeAttribute("data-local");
  }
}

function tick() {
  const now = Date.now() + ahead;
  for (const one of document.querySelectorAll("time[data-when]")) {
    const distance = words(now - Date.parse(one.dateTime));
    const text = one.dataset.when === "elapsed" ? distance.replace(" ago", "") : distance;
    if (one.textContent !== text) one.textContent = text;
  }
}

export function words(distance) {
  if (Math.abs(distance) < 1000) return "now";
  const [size, unit] = UNITS.find(([size]) => Math.abs(distance) >= size);
  const count = `${Math.floor(Math.abs(distance) / size)}${unit}`;
  return distance > 0 ? `${count} ago` : `in ${count}`;
}
