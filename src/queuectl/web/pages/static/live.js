// Live: the server says that something has changed, and the page asks for itself again. At most twice a second, however
// many changes there are, and not at all while nobody sees it.
import { parse, swap } from "./swap.js";

const REST = 500; // at least so long between two looks
const SLOW = 5; // and so many times as long as a look took: who looks on must not keep busy those who work
const PATIENCE = 1500; // until it is worth a word that the line is down

let source = null;
let isWanted = false;
let isLooking = false;
let restUntil = 0;
let timer = 0;

export function start() {
  if (!document.getElementById("link-state") || !window.EventSource) return;
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  window.addEventListener("offline", () => tell("You are offline. What you see is as it was.", "bad"));
  window.addEventListener("online", () => open(true));
  window.addEventListener("pagehide", close); // a browser has few lines to one server
  window.addEventListener("pageshow", (event) => event.persisted && open(true));
  if (!document.hidden) open();
}

function open(anew = false) {
  if (anew) close();
  if (source) return;
  source = new EventSource("/api/v1/events?brief=true");
  source.addEventListener("open", () => {
    clearTimeout(timer);
    tell("");
  });
  source.addEventListener("status", () => {
    tell("");
    want(); // also the first: something may have happened since the page was made
  });
  source.addEventListener("problem", (event) => {
    const { detail, hint } = JSON.parse(event.data);
    tell(`The store does not answer: ${detail}. ${hint[0].toUpperCase()}${hint.slice(1)}. What you see is as it was.`, "bad");
  });
  source.addEventListener("error", () => {
    clearTimeout(timer);
    timer = setTimeout(() => tell("The dashboard does not answer. Trying again …", "bad"), PATIENCE);
    if (source?.readyState === EventSource.CLOSED) {
      source = null;
      setTimeout(() => document.hidden || open(), 3000);
    }
  });
}

function close() {
  clearTimeout(timer);
  source?.close();
  source = null;
}

function tell(text, kind = "warn") {
  const line = document.getElementById("link-state");
  if (line.textContent === text) return;
  line.textContent = text;
  line.dataset.kind = kind;
  line.hidden = !text;
}

export function want() {
  isWanted = true;
  look();
}

async function look() {
  if (isLooking || !isWanted || document.hidden || isBusy()) return;
  const wait = restUntil - performance.now();
  if (wait > 0) return void setTimeout(look, wait);
  isLooking = true;
  isWanted = false;
  const began = performance.now();
  try {
    const address = location.href;
    const answer = await fetch(address, { headers: { Accept: "text/html" }, cache: "no-store" });
    if (answer.ok && address === location.href) swap(parse(await answer.text()));
    else if (answer.status === 401) tell("This page is no longer let in: the dashboard was started anew. Open its new address.", "bad");
  } catch {
    isWanted = true; // the line is down: said by `error`
  }
  restUntil = performance.now() + Math.max(REST, SLOW * (performance.now() - began));
  isLooking = false;
  if (isWanted) setTimeout(look, REST);
}

// Somebody types, has ticked jobs of a list, or stands before a question.
function isBusy() {
  if (document.querySelector("dialog[open]") || document.querySelector("#selection input[name=id]:checked")) {
    setTimeout(look, REST);
    return true;
  }
  return false;
}
