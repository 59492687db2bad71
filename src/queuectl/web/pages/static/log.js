// Follow the log of a job, unless the user scrolls up; search while typing.
import { Painter } from "./ansi.js";
import { onSwap } from "./swap.js";

const MAX_LINES = 5000; // lines on the page; the download has all
const MAX_LINE_LENGTH = 262144; // characters of one line, as on the server

let log, follow, source, painter, open, hits, at;
let isDone = false; // the log is complete, unless the job runs again

export function start() {
  log = document.querySelector("[data-log]");
  if (!log) return;
  follow = document.querySelector("[data-follow]");
  watch();
  const form = document.querySelector("[data-log-find]");
  form.addEventListener("submit", (event) => (event.preventDefault(), go(1)));
  form.elements.find.addEventListener("input", search);
  log.scrollTop = log.scrollHeight;
  search();
  isDone = log.dataset.ended !== undefined;
  if (!window.EventSource) return;
  onSwap(check);
  check();
}

// A follower holds a thread of the server: follow only while output can come.
function check() {
  if (source) return;
  const state = document.querySelector("#job-state .state")?.textContent;
  if (state === "processing" || (!isDone && state !== "pending" && state !== "blocked")) listen();
}

function watch() {
  follow.closest("[data-follow-box]").hidden = log.dataset.ended !== undefined;
  follow.addEventListener("change", () => follow.checked && bottom());
  // Scrolling up stops following; scrolling to the end resumes it.
  log.addEventListener("scroll", () => (follow.checked = log.scrollHeight - log.scrollTop - log.clientHeight < 24));
}

const bottom = () => (log.scrollTop = log.scrollHeight);

function listen() {
  if (document.hidden) return void document.addEventListener("visibilitychange", listen, { once: true });
  follow.closest("[data-follow-box]").hidden = false;
  source = new EventSource(log.dataset.log);
  let isFirst = true;
  source.addEventListener("output", (event) => {
    if (isFirst) restart(); // the stream begins with the lines that are already shown
    isFirst = false;
    append(JSON.parse(event.data));
  });
  source.addEventListener("end", () => {
    source.close();
    source = null;
    isDone = true;
    follow.closest("[data-follow-box]").hidden = true;
  });
  source.addEventListener("error", () => {
    source.close(); // start over: the offsets of this stream do not apply to a new one
    source = null;
    setTimeout(check, 3000);
  });
  document.addEventListener("visibilitychange", onHide);
}

function onHide() {
  if (!document.hidden) return;
  document.removeEventListener("visibilitychange", onHide);
  if (!source) return;
  source.close();
  source = null;
  listen();
}

function restart() {
  log.replaceChildren();
  painter = new Painter();
  open = null;
}

function append(text) {
  const added = document.createDocumentFragment();
  const lines = text.split("\n");
  lines.forEach((line, index) => {
    const isLast = index === lines.length - 1;
    if (isLast && !line) return;
    if (!open) {
      open = document.createElement("span");
      open.className = "line";
      open.raw = "";
      added.append(open);
    }
    open.raw = latest(open.raw + line).slice(-MAX_LINE_LENGTH);
    if (isLast) return;
    finish(open);
    open = null;
  });
  if (open) {
    open.textContent = "";
    // The last line may end within an escape sequence. It is rendered again when it is complete.
    painter.copy().paint(open.raw.slice(-2000).replace(/\x1b\[?[0-?]*[ -/]*$/, ""), open);
  }
  log.append(added);
  while (log.childElementCount > MAX_LINES) log.firstElementChild.remove();
  if (follow.checked) bottom();
}

// Progress bars return to the start of the line. A return at the end overwrites nothing yet, and a line feed may follow.
const latest = (line) => line.replace(/^[^]*\r(?=[^\r])/, "");

function finish(line) {
  line.textContent = "";
  if (/^--- (START|END) /.test(line.raw)) line.classList.add("mark");
  painter.paint(line.raw, line);
  line.append("\n");
  line.raw = "";
  const wanted = needle();
  if (wanted && line.textContent.toLowerCase().includes(wanted)) line.classList.add("hit"), count();
}

const needle = () => document.getElementById("log-find").value.trim().toLowerCase();

function search() {
  const wanted = needle();
  for (const line of log.children) line.classList.toggle("hit", Boolean(wanted) && line.textContent.toLowerCase().includes(wanted));
  at = -1;
  count();
  if (wanted) go(1);
}

function count() {
  hits = [...log.querySelectorAll(".hit")];
  const words = document.querySelector("[data-hits]");
  words.textContent = needle() ? `${hits.length} ${hits.length === 1 ? "line" : "lines"}` : "";
}

function go(by) {
  if (!hits?.length) return;
  hits[at]?.classList.remove("here");
  at = (at + by + hits.length) % hits.length;
  hits[at].classList.add("here");
  log.scrollTop = hits[at].offsetTop - log.offsetTop - log.clientHeight / 2;
}
