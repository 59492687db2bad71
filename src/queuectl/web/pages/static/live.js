// Live updates: the server sends an event after a change, and the page asks for its regions that differ. At most twice a second,
// and never while the page is hidden, or the user has paused updates.
import { parseRegions, swap, versions } from "./swap.js";

const MIN_INTERVAL = 500; // ms between two updates
const REST_FACTOR = 5; // pause this many times the duration of an update, so that pages do not slow down the workers
const LOST_AFTER = 1500; // ms until a lost connection is reported
const MAX_INTERVAL = 5000; // ms; workers and connections can die without an event
const REQUEST_TIMEOUT = 30000; // ms; timeout of a request
const BYTES_PER_MS = 9; // so that a page that is watched takes less than 10 KB/s
const RETRY_AFTER = 3000; // ms after a failed request
const PAUSED = "queuectl-paused"; // in the storage of the tab
const LABELS = { connecting: "Connecting", live: "Live", lost: "Offline", paused: "Paused" };

let source = null;
let isRequested = false;
let isUpdating = false;
let restUntil = 0;
let timer = 0; // for the report of a lost connection
let next = 0; // the next update
let isPaused = false;

export function start() {
  if (!document.getElementById("link-state") || !window.EventSource) return;
  isPaused = sessionStorage.getItem(PAUSED) !== null;
  const button = document.querySelector("[data-live-switch]");
  button.hidden = false;
  button.addEventListener("click", togglePause);
  show(isPaused ? "paused" : "connecting");
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  // After a change of the network a connection may be dead without an error.
  for (const change of ["offline", "online"]) window.addEventListener(change, () => open(true));
  window.addEventListener("pagehide", close); // browsers limit the connections to one server
  window.addEventListener("pageshow", (event) => event.persisted && open(true));
  setInterval(requestUpdate, MAX_INTERVAL);
  if (!document.hidden) open();
}

function open(reconnect = false) {
  if (reconnect) close();
  if (source || isPaused) return;
  source = new EventSource("/api/v1/events?brief=true");
  source.addEventListener("open", connected);
  source.addEventListener("status", () => {
    report("");
    requestUpdate(); // also at first: something may have changed since the page was rendered
  });
  source.addEventListener("problem", (event) => {
    const { detail, hint } = JSON.parse(event.data);
    report(`The database is unavailable: ${detail}. ${hint[0].toUpperCase()}${hint.slice(1)}. This page may be out of date.`, "bad");
  });
  source.addEventListener("error", () => {
    disconnected();
    if (source?.readyState === EventSource.CLOSED) {
      source = null;
      setTimeout(() => document.hidden || open(), RETRY_AFTER);
    }
  });
}

function close() {
  stopTimer();
  source?.close();
  source = null;
}

/** Pause live updates, or resume them. */
export function togglePause() {
  isPaused = !isPaused;
  if (isPaused) sessionStorage.setItem(PAUSED, "");
  else sessionStorage.removeItem(PAUSED);
  if (isPaused) close(), report("");
  show(isPaused ? "paused" : "connecting");
  if (!isPaused) open(), requestUpdate();
}

function show(state) {
  const button = document.querySelector("[data-live-switch]");
  button.dataset.state = state;
  button.title = isPaused ? "Resume live updates" : "Pause live updates";
  button.querySelector("[data-live-label]").textContent = LABELS[state];
}

function disconnected() {
  if (isPaused) return;
  const words = "The dashboard is not responding. This page may be out of date. Reconnecting…";
  timer ||= setTimeout(() => (show("lost"), report(words, "bad")), LOST_AFTER);
}

function connected() {
  stopTimer();
  if (isPaused) return;
  show("live");
  report("");
}

function stopTimer() {
  clearTimeout(timer);
  timer = 0;
}

function report(text, kind = "warn") {
  const line = document.getElementById("link-state");
  if (line.textContent === text) return;
  line.textContent = text;
  line.dataset.kind = kind;
  line.hidden = !text;
}

export function requestUpdate() {
  isRequested = true;
  update();
}

async function update() {
  if (isUpdating || !isRequested || isPaused || document.hidden) return;
  const wait = isBusy() ? MIN_INTERVAL : restUntil - performance.now();
  if (wait > 0) return later(wait);
  isUpdating = true;
  isRequested = false;
  const began = performance.now();
  const page = await ask(location.href);
  if (page && isBusy()) isRequested = true; // since the request began
  else if (page && !isPaused) swap(page.regions);
  const rest = Math.max(MIN_INTERVAL, REST_FACTOR * (performance.now() - began), (page?.bytes ?? 0) / BYTES_PER_MS);
  restUntil = Math.max(restUntil, performance.now() + rest);
  isUpdating = false;
  update();
}

// One timer for all requests: events arrive up to four times a second.
function later(wait) {
  clearTimeout(next);
  next = setTimeout(update, wait);
}

// Fetch the live regions of the current page, with the size of the response; null after an error. The header lets the server leave out
// the rest, such as a log, and the regions that have not changed.
async function ask(address) {
  try {
    const signal = AbortSignal.timeout(REQUEST_TIMEOUT);
    const headers = { Accept: "text/html", "Queuectl-Update": versions() };
    const answer = await fetch(address, { headers, cache: "no-store", signal });
    const html = await answer.text();
    if (answer.ok) connected();
    else if (answer.status === 401) report("Session expired: the dashboard was restarted. Open its new address.", "bad");
    const bytes = Number(answer.headers.get("Content-Length")); // compressed
    return answer.ok && address === location.href ? { regions: parseRegions(html), bytes } : null;
  } catch {
    disconnected();
    isRequested = true;
    restUntil = performance.now() + RETRY_AFTER;
    return null;
  }
}

// Whether the user has selected jobs, which must not move or vanish meanwhile, a form is being sent, or a dialog is open, whose close
// returns the focus to the button that opened it.
const isBusy = () => Boolean(document.querySelector("dialog[open], [aria-busy], #selection input[name=id]:checked"));
