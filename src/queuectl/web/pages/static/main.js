// Progressive enhancement: every page works without these scripts.
import { start as startCharts } from "./charts.js";
import { start as startCopy } from "./copy.js";
import { start as startForms } from "./forms.js";
import { start as startKeys } from "./keys.js";
import { start as startLive } from "./live.js";
import { start as startLog } from "./log.js";
import { start as startSelect } from "./select.js";
import { start as startTimes } from "./times.js";

// Scroll a wide dependency graph to the job of the page.
function startGraph() {
  const root = document.querySelector(".graph .root");
  const place = root?.closest(".scroll");
  if (place) place.scrollLeft = root.x.baseVal.value + root.width.baseVal.value / 2 - place.clientWidth / 2;
}

// On a narrow screen the navigation scrolls.
function startNavigation() {
  const list = document.querySelector(".side ul");
  const here = list?.querySelector("[aria-current]");
  if (here) list.scrollLeft = here.offsetLeft - (list.clientWidth - here.offsetWidth) / 2;
}

// On a phone, the details of a job are folded.
function startDetails() {
  if (matchMedia("(max-width: 860px)").matches) document.getElementById("details")?.removeAttribute("open");
}

for (const start of [startNavigation, startTimes, startForms, startSelect, startKeys, startGraph, startCopy, startDetails, startLog, startCharts, startLive]) start();
