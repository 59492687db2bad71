// Live: the server says that something has changed, and the page asks for itself again. At most twice a second, however
// many changes there are, and not at all while nobody sees it.
import { parse, swap } from "./swap.js";

const REST = 500; // at least so long between two looks
const SLOW = 5; // and so many times as long as a look took: who looks on must not keep busy those who work
const PATIENCE = 1500; // until it is worth a word that the line is down
const AT_LEAST = 5000; // workers die without a word, and so do lines
const ANSWER = 30000; // longer than any page takes
const AGAIN = 3000; // after a question that was not answered

let source = null;
let isWanted = false;
let isLooking = false;
let restUntil = 0;
let timer = 0; // until somebody is told that the line is down
let next = 0; // the next look

export function start() {
  if (!document.getElementById("link-state") || !window.EventSource) return;
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  // Either way a dashboard on this machine answers as before, and what came from elsewhere may be a line to nobody.
  for (const change of ["offline", "online"]) window.addEventListener(change, () => open(true));
  window.addEventListener("pagehide", close); // a browser has few lines to one server
  window.addEventListener("pageshow", (event) => event.persisted && open(true));
  setInterval(want, AT_LEAST);
  if (!document.hidden) open();
}

function open(anew = false) {
  if (anew) close();
  if (source) return;
  source = new EventSource("/api/v1/events?brief=true");
  source.addEventListener("open", found);
  source.addEventListener("status", () => {
    tell("");
    want(); // also the first: something may have happened since the page was made
  });
  source.addEventListener("problem", (event) => {
    const { detail, hint } = JSON.parse(event.data);
    tell(`The store does not answer: ${detail}. ${hint[0].toUpperCase()}${hint.slice(1)}. What you see is as it was.`, "bad");
  });
  source.addEventListener("error", () => {
    lost();
    if (source?.readyState === EventSource.CLOSED) {
      source = null;
      setTimeout(() => document.hidden || open(), AGAIN);
    }
  });
}

function close() {
  stopTimer();
  source?.close();
  source = null;
}

function lost() {
  const words = "The dashboard does not answer. What you see is as it was; trying again …";
  timer ||= setTimeout(() => tell(words, "bad"), PATIENCE);
}

function found() {
  stopTimer();
  tell("");
}

function stopTimer() {
  clearTimeout(timer);
  timer = 0;
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
  if (isLooking || !isWanted || document.hidden) return;
  const wait = isBusy() ? REST : restUntil - performance.now();
  if (wait > 0) return later(wait);
  isLooking = true;
  isWanted = false;
  const began = performance.now();
  const page = await ask(location.href);
  if (page) swap(page);
  restUntil = Math.max(restUntil, performance.now() + Math.max(REST, SLOW * (performance.now() - began)));
  isLooking = false;
  look();
}

// One timer, however many ask: while somebody is busy they come four times a second, and stay.
function later(wait) {
  clearTimeout(next);
  next = setTimeout(look, wait);
}

// The page at this address as it is now; null if there is none to show.
async function ask(address) {
  try {
    const signal = AbortSignal.timeout(ANSWER);
    const answer = await fetch(address, { headers: { Accept: "text/html" }, cache: "no-store", signal });
    const html = await answer.text();
    if (answer.ok) found();
    else if (answer.status === 401) tell("This page is no longer let in: the dashboard was started anew. Open its new address.", "bad");
    return answer.ok && address === location.href ? parse(html) : null;
  } catch {
    lost();
    isWanted = true;
    restUntil = performance.now() + AGAIN;
    return null;
  }
}

// Somebody has ticked jobs of a list, or stands before a question.
const isBusy = () => Boolean(document.querySelector("dialog[open], #selection input[name=id]:checked"));
