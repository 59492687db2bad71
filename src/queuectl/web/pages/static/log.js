// The log of a job: follow it, unless the user scrolls up; load the lines that are not on the page; search on the server.
import { color, Painter } from "./ansi.js";
import { copy } from "./copy.js";
import { onSwap } from "./swap.js";

const MAX_LINES = 5000; // on the page while the log grows
const WINDOW = 500; // lines of one request, as on the server
const MAX_LINE_LENGTH = 262144; // characters of one line, as on the server

let log, viewer, follow, field, source;
let first, last, isAtEnd; // the numbers of the lines on the page, and whether the end of the log is among them
let painter, before, open; // `before`: the painter at the beginning of the last line; `open`: the last line, if it may grow
let pending = "", frame = 0; // output that is not on the page yet
let isDone = false; // the log is complete, unless the job runs again
let isLoading = false;
let matches = [], nextLine = null, at = -1, searches = 0; // numbers of lines, where to search on, the current one

export function start() {
  log = document.querySelector("[data-log]");
  if (!log) return;
  viewer = log.closest("section");
  follow = viewer.querySelector("[data-follow]");
  field = document.getElementById("log-find");
  [first, last] = [Number(log.dataset.first), Number(log.dataset.last)];
  isAtEnd = last >= Number(log.dataset.total);
  painter = before = new Painter(Object.entries(JSON.parse(log.dataset.style)));
  color(log);
  for (const one of viewer.querySelectorAll("[data-script]")) one.hidden = false;
  controls();
  isDone = log.dataset.ended !== undefined;
  const wanted = hashLine();
  if (wanted) show(wanted);
  else if (log.querySelector(".here")) show(Number(log.querySelector(".here a").dataset.n));
  else if (isAtEnd) bottom();
  if (field.value) search(false);
  onSwap(check);
  check();
}

function controls() {
  viewer.addEventListener("click", onClick);
  window.addEventListener("hashchange", () => hashLine() && show(hashLine()));
  follow.addEventListener("change", () => follow.checked && (isAtEnd ? bottom() : end()));
  // Scrolling up stops following; scrolling to the end resumes it.
  let top = 0;
  log.addEventListener("scroll", () => {
    follow.checked = isAtEnd && log.scrollHeight - log.scrollTop - log.clientHeight < 24;
    if (log.scrollTop < Math.min(top, 24)) earlier();
    top = log.scrollTop;
  });
  const wrap = viewer.querySelector("[data-wrap]");
  wrap.checked = localStorage.getItem("queuectl-wrap") !== "no";
  const apply = () => log.classList.toggle("nowrap", !wrap.checked);
  wrap.addEventListener("change", () => (localStorage.setItem("queuectl-wrap", wrap.checked ? "yes" : "no"), apply()));
  apply();
  let timer;
  field.addEventListener("input", () => (clearTimeout(timer), (timer = setTimeout(search, 200))));
  field.form.addEventListener("submit", (event) => (event.preventDefault(), step(1)));
  field.addEventListener("keydown", (event) => event.key === "Enter" && event.shiftKey && (event.preventDefault(), step(-1)));
  log.addEventListener("keydown", (event) => {
    if (!["n", "N"].includes(event.key) || event.ctrlKey || event.metaKey || event.altKey || !matches.length) return;
    event.stopPropagation(); // elsewhere, n opens the form for a new job
    step(event.key === "n" ? 1 : -1);
  });
}

function onClick(event) {
  const target = event.target.closest("[data-do], [data-n]");
  if (!target) return;
  event.preventDefault();
  if (target.dataset.do) return void ACTIONS[target.dataset.do](target);
  history.replaceState(null, "", target.hash);
  show(Number(target.dataset.n));
}

const hashLine = () => Number(/^#L(\d+)$/.exec(location.hash)?.[1]);
const bottom = () => (log.scrollTop = log.scrollHeight);

// ── follow ──────────────────────────────────────────────────────────────────────────────────────────────────────────

// A follower holds a thread of the server: follow only while output can come.
function check() {
  const state = document.querySelector("#job-state .state")?.textContent;
  const isDue = state === "processing" || (!isDone && state !== "pending" && state !== "blocked");
  if (!source && isAtEnd && isDue && window.EventSource) listen();
  offerFollow();
}

const offerFollow = () => (viewer.querySelector("[data-follow-box]").hidden = !source && (isAtEnd || isDone));

function listen() {
  if (document.hidden) return void document.addEventListener("visibilitychange", check, { once: true });
  render(); // `last` counts what has come
  source = new EventSource(address("", { follow: true, tail: MAX_LINES, from_line: Math.max(1, last) }));
  source.addEventListener("line", (event) => restart(Number(event.data)));
  source.addEventListener("output", (event) => receive(JSON.parse(event.data)));
  source.addEventListener("end", () => {
    isDone = true; // the page may still show the job as running: wait for its update
    close();
    offerFollow();
  });
  source.addEventListener("error", () => {
    close();
    setTimeout(check, 3000);
  });
  document.addEventListener("visibilitychange", onHide);
}

function close() {
  source?.close();
  source = null;
  document.removeEventListener("visibilitychange", onHide);
}

function onHide() {
  close();
  check();
}

/** The stream begins with this line: the last one on the page, unless many lines were missed or the log was cut. */
function restart(number) {
  if (number === last) log.lastElementChild.remove();
  else clear(number);
  last = number - 1;
  painter = before.copy();
  open = null;
}

function clear(number) {
  log.replaceChildren();
  first = number;
  before = new Painter();
}

function receive(text) {
  pending += text;
  frame ||= requestAnimationFrame(render);
}

function render() {
  cancelAnimationFrame(frame);
  frame = 0;
  let lines = pending.split("\n");
  pending = "";
  const skipped = lines.length - MAX_LINES;
  if (skipped > 0 && follow.checked) {
    // Faster than the page: only the last lines would stay.
    last += skipped - (open ? 1 : 0);
    clear(last + 1);
    painter = before.copy();
    open = null;
    lines = lines.slice(skipped);
  }
  append(lines);
  if (follow.checked) {
    while (log.childElementCount > MAX_LINES) log.firstElementChild.remove(), first++;
    bottom();
  } else if (log.childElementCount > 2 * MAX_LINES) {
    close(); // the user reads earlier lines
    isAtEnd = false;
  }
  report();
}

function append(lines) {
  const added = document.createDocumentFragment();
  lines.forEach((text, index) => {
    const isLast = index === lines.length - 1;
    if (isLast && !text) return;
    if (!open) {
      open = element(++last);
      open.raw = "";
      added.append(open);
    }
    open.raw = latest(open.raw + text).slice(-MAX_LINE_LENGTH);
    if (isLast) return;
    before = painter.copy();
    finish(open, open.raw, painter);
    open = null;
  });
  if (open) {
    before = painter.copy();
    open.replaceChildren(open.firstChild);
    // The last line may end within an escape sequence. It is rendered again when it is complete.
    painter.copy().paint(open.raw.slice(-2000).replace(/\x1b\[?[0-?]*[ -/]*$/, ""), open);
  }
  log.append(added);
}

// Progress bars return to the start of the line. A return at the end overwrites nothing yet, and a line feed may follow.
const latest = (line) => line.replace(/^[^]*\r(?=[^\r])/, "");

function element(number) {
  const line = document.createElement("span");
  line.className = "line";
  line.id = `L${number}`;
  const link = document.createElement("a");
  link.href = `#L${number}`;
  link.dataset.n = number;
  link.tabIndex = -1;
  link.setAttribute("aria-hidden", "true");
  line.append(link);
  return line;
}

function finish(line, raw, painter) {
  line.replaceChildren(line.firstChild);
  if (/^--- (START|END) /.test(raw)) line.classList.add("mark");
  painter.paint(raw, line);
  line.append("\n");
  if (!mark(line)) return;
  const number = Number(line.firstChild.dataset.n);
  if (nextLine === null && number > (matches.at(-1) ?? 0)) matches.push(number), count();
}

// ── other parts of the log ──────────────────────────────────────────────────────────────────────────────────────────

function address(path, values) {
  if (log.dataset.run) values.run = log.dataset.run;
  return `${log.dataset.log}${path}?${new URLSearchParams(values)}`;
}

async function ask(path, values) {
  const answer = await fetch(address(path, values));
  if (!answer.ok) throw new Error((await answer.json()).detail);
  return answer.json();
}

/** Do one thing at a time that loads lines. */
async function loading(work) {
  if (isLoading) return;
  isLoading = true;
  try {
    await work();
  } catch (error) {
    viewer.querySelector("[data-range]").textContent = `Lines cannot be loaded: ${error.message}`;
    return;
  } finally {
    isLoading = false;
  }
  report();
}

function elements(window, own) {
  return window.lines.map((text, index) => {
    if (index === window.lines.length - 1 && own === painter) before = own.copy();
    const line = element(window.first + index);
    finish(line, text, own);
    return line;
  });
}

function extend(window) {
  log.append(...elements(window, painter));
  last = window.first + window.lines.length - 1;
  isAtEnd = last >= window.total;
  check();
}

function replace(window) {
  close();
  pending = "";
  open = null;
  clear(window.first);
  painter = before.copy();
  extend(window);
}

const earlier = () => first > 1 && loading(async () => {
  follow.checked = false;
  const added = [];
  const stop = first;
  let from = Math.max(1, stop - WINDOW);
  while (from < stop) {
    const window = await ask("/lines", { from_line: from, limit: stop - from });
    if (!window.lines.length) break;
    added.push(...elements(window, new Painter()));
    from += window.lines.length;
  }
  const height = log.scrollHeight;
  log.prepend(...added);
  log.scrollTop += log.scrollHeight - height;
  first = Number(log.firstElementChild.firstChild.dataset.n);
});

const later = () => loading(async () => extend(await ask("/lines", { from_line: last + 1, limit: WINDOW })));

const end = () => loading(async () => {
  replace(await ask("/lines", { limit: WINDOW }));
  follow.checked = true;
  bottom();
});

const ACTIONS = {
  earlier,
  later,
  end,
  next: () => step(1),
  previous: () => step(-1),
  copy: (button) => copy(log.textContent, button),
  full: () => (document.fullscreenElement ? document.exitFullscreen() : viewer.requestFullscreen()),
};

async function show(number) {
  follow.checked = false;
  if (number < first || number > last)
    await loading(async () => {
      const window = await ask("/lines", { from_line: Math.max(1, number - WINDOW / 2), limit: WINDOW });
      if (window.first + window.lines.length > number) replace(window);
    });
  const line = document.getElementById(`L${number}`);
  if (!line) return;
  log.querySelector(".here")?.classList.remove("here");
  line.classList.add("here");
  log.scrollTop = line.offsetTop - log.offsetTop - log.clientHeight / 2;
}

/** Which lines are on the page. */
function report() {
  const total = isAtEnd ? last : 0;
  log.dataset.digits = String(Math.max(last, log.dataset.total)).length; // the width of the line numbers
  const text = last < first ? "" : `Lines ${first.toLocaleString("en")}–${last.toLocaleString("en")}${total ? ` of ${total.toLocaleString("en")}` : ""}`;
  viewer.querySelector("[data-range]").textContent = text;
  viewer.querySelector("[data-do=earlier]").hidden = first <= 1;
  for (const name of ["later", "end"]) viewer.querySelector(`[data-do=${name}]`).hidden = isAtEnd;
}

// ── search ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const needle = () => field.value.trim().toLowerCase();

function mark(line) {
  const wanted = needle();
  const isHit = Boolean(wanted) && line.textContent.toLowerCase().includes(wanted);
  line.classList.toggle("hit", isHit);
  return isHit;
}

async function search(moves = true) {
  const own = ++searches;
  [matches, nextLine, at] = [[], null, -1];
  if (needle()) await more(1, own);
  if (own !== searches) return; // another search has begun
  for (const line of log.children) mark(line);
  count();
  if (matches.length && moves !== false) {
    const top = [...log.children].find((line) => line.offsetTop - log.offsetTop + line.offsetHeight > log.scrollTop);
    at = matches.findIndex((number) => number >= Number(top?.firstChild.dataset?.n ?? 1)) - 1;
    if (at < -1) at = -1;
    step(1);
  }
}

async function more(from, own = searches) {
  const found = await ask("/search", { text: needle(), from_line: from });
  if (own !== searches) return;
  // The stream may have added some meanwhile.
  matches = [...new Set([...matches, ...found.items.map((match) => match.line)])].sort((a, b) => a - b);
  nextLine = found.next_line;
}

async function step(by) {
  if (by > 0 && at === matches.length - 1 && nextLine !== null) await more(nextLine);
  if (!matches.length) return;
  at = at < 0 && by < 0 ? matches.length - 1 : (at + by + matches.length) % matches.length;
  count();
  await show(matches[at]);
}

function count() {
  const all = `${matches.length.toLocaleString("en")}${nextLine === null ? "" : "+"}`;
  const words = at < 0 ? `${all} ${all === "1" ? "line" : "lines"}` : `${at + 1} of ${all}`;
  viewer.querySelector("[data-hits]").textContent = needle() ? words : "";
  for (const name of ["previous", "next"]) viewer.querySelector(`[data-do=${name}]`).hidden = !matches.length;
}
