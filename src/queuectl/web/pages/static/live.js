// Live updates: the server sends an event after a change, and the page reloads itself in the background. At most twice a second,
// and never while the page is hidden.
import { parse, swap } from "./swap.js";

const REST = 500; // ms between two updates
const SLOW = 5; // pause this many times the duration of an update, so that pages do not slow down the workers
const PATIENCE = 1500; // ms until a lost connection is reported
const AT_LEAST = 5000; // ms; workers and connections can die without an event
const ANSWER = 30000; // ms; timeout of a request
const AGAIN = 3000; // ms after a failed request

let source = null;
let isWanted = false;
let isLooking = false;
let restUntil = 0;
let timer = 0; // for the report of a lost connection
let next = 0; // the next update

export function start() {
  if (!document.getElementById("link-state") || !window.EventSource) return;
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  // After a change of the network a connection may be dead without an error.
  for (const change of ["offline", "online"]) window.addEventListener(change, () => open(true));
  window.addEventListener("pagehide", close); // browsers limit the connections to one server
  window.addEventListener("pageshow", (event) => event.persisted && open(true));
  setInterval(want, AT_LEAST);
  if (!document.hidden) open();
}

function open(reconnect = false) {
  if (reconnect) close();
  if (source) return;
  source = new EventSource("/api/v1/events?brief=true");
  source.addEventListener("open", found);
  source.addEventListener("status", () => {
    tell("");
    want(); // also at first: something may have changed since the page was rendered
  });
  source.addEventListener("problem", (event) => {
    const { detail, hint } = JSON.parse(event.data);
    tell(`The database is unavailable: ${detail}. ${hint[0].toUpperCase()}${hint.slice(1)}. This page may be out of date.`, "bad");
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
  const words = "The dashboard is not responding. This page may be out of date. Reconnecting…";
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
  if (page && isBusy()) isWanted = true; // since the request began
  else if (page) swap(page);
  restUntil = Math.max(restUntil, performance.now() + Math.max(REST, SLOW * (performance.now() - began)));
  isLooking = false;
  look();
}

// One timer for all requests: events arrive up to four times a second.
function later(wait) {
  clearTimeout(next);
  next = setTimeout(look, wait);
}

// Fetch the current page; null after an error.
async function ask(address) {
  try {
    const signal = AbortSignal.timeout(ANSWER);
    const answer = await fetch(address, { headers: { Accept: "text/html" }, cache: "no-store", signal });
    const html = await answer.text();
    if (answer.ok) found();
    else if (answer.status === 401) tell("Session expired: the dashboard was restarted. Open its new address.", "bad");
    return answer.ok && address === location.href ? parse(html) : null;
  } catch {
    lost();
    isWanted = true;
    restUntil = performance.now() + AGAIN;
    return null;
  }
}

// Whether the user has selected jobs, a form is being sent, or a dialog is open. When the dialog closes, the focus returns to the
// button that opened it: another copy of the button would not get it.
const isBusy = () => Boolean(document.querySelector("dialog[open], [aria-busy], #selection input[name=id]:checked"));
