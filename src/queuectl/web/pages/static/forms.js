// The forms, sent without leaving the page. Each does the same when it is sent by the browser.
import { want } from "./live.js";
import { forget, parse, swap } from "./swap.js";

export function start() {
  document.addEventListener("submit", onSubmit);
  document.addEventListener("click", onClick);
  for (const filters of document.querySelectorAll("[data-filters]"))
    filters.addEventListener("change", (event) => event.target.matches("select") && filters.requestSubmit());
  unhide();
  const address = new URL(location.href);
  if (address.searchParams.has("notice")) {
    address.searchParams.delete("notice"); // read: not to be read again by who comes back
    history.replaceState(null, "", address);
  }
}

function unhide() {
  for (const one of document.querySelectorAll("[data-dismiss][hidden], [data-help][hidden]")) one.hidden = false;
}

async function onSubmit(event) {
  const form = event.target;
  if (form.getAttribute("method") === "dialog" || form.dataset.plain !== undefined) return;
  if (form.dataset.filters !== undefined) return tidy(form);
  if (form.dataset.dialog !== undefined) {
    event.preventDefault();
    return ask(`${form.getAttribute("action")}?${new URLSearchParams(new FormData(form))}`);
  }
  if (form.getAttribute("method") !== "post") return;
  event.preventDefault();
  await send(form, event.submitter);
}

// An address with only what was said.
function tidy(form) {
  const unsaid = [...form.elements].filter((one) => one.name && !one.value);
  for (const one of unsaid) one.disabled = true;
  setTimeout(() => unsaid.forEach((one) => (one.disabled = false)));
}

async function send(form, button) {
  const wasFocused = button && document.activeElement === button;
  button?.setAttribute("aria-busy", "true");
  if (button) button.disabled = true;
  let answer, page;
  try {
    const body = new URLSearchParams(new FormData(form));
    answer = await fetch(form.getAttribute("action"), { method: "POST", body, headers: { Accept: "text/html" } });
    page = parse(await answer.text());
  } catch {
    say("The dashboard does not answer. Nothing was changed, as far as can be told from here.");
  }
  button?.removeAttribute("aria-busy");
  if (button) button.disabled = false;
  if (wasFocused) button.focus(); // a disabled button loses the focus, and the dialog gives it back to the button
  if (page) show(page, answer, form);
}

/** A page with a question becomes a dialog on top of this one; else see `land`. */
function show(page, answer, form = null) {
  const sheet = page.querySelector("[data-sheet]");
  if (sheet) open(document.importNode(sheet, true));
  else land(page, answer, form);
}

/** Where a form has led: the same page with news, or another one. */
function land(page, answer, form = null) {
  document.getElementById("dialog").close();
  const to = new URL(answer.url);
  to.searchParams.delete("notice");
  const isRefused = page.querySelector("#notice [data-kind=refused]") || answer.status >= 400;
  const isHere = to.pathname === location.pathname;
  const news = page.getElementById("notice");
  if (!news || (!isHere && !isRefused)) {
    location.assign(answer.redirected && answer.ok ? answer.url : to); // with its notice
    return;
  }
  const box = page.querySelector("#notice .notice, main > .notice");
  document.getElementById("notice").replaceChildren(...(box ? [document.importNode(box, true)] : []));
  unhide();
  document.getElementById("notice").scrollIntoView({ block: "nearest" });
  if (isRefused) return; // what was typed stays
  for (const one of document.querySelectorAll("#selection input:checked")) one.checked = false;
  forget();
  swap(page, form);
  want();
}

function say(text) {
  const box = document.createElement("div");
  box.className = "notice n-refused";
  box.textContent = text;
  document.getElementById("notice").replaceChildren(box);
}

/** A page as a sheet on top of this one. */
async function ask(address) {
  try {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    show(parse(await answer.text()), answer);
  } catch {
    say("The dashboard does not answer. Nothing was changed.");
  }
}

function open(...content) {
  const dialog = document.getElementById("dialog");
  dialog.replaceChildren(...content);
  dialog.showModal();
  (dialog.querySelector("[autofocus]") ?? dialog.querySelector("button, a"))?.focus();
  return dialog;
}

export function help() {
  open(document.getElementById("help").content.cloneNode(true));
}

function onClick(event) {
  const target = event.target.closest("[data-dismiss], [data-close], [data-help]");
  if (!target) return;
  if (target.dataset.dismiss !== undefined) target.closest(".notice").remove();
  else if (target.dataset.help !== undefined) help();
  else if (target.closest("dialog")) {
    event.preventDefault();
    target.closest("dialog").close();
  }
}
