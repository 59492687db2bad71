// Submit forms without leaving the page. Each works the same without JavaScript.
import { requestUpdate } from "./live.js";
import { clear } from "./select.js";
import { parse, swap } from "./swap.js";

export function start() {
  document.addEventListener("submit", onSubmit);
  document.addEventListener("click", onClick);
  document.addEventListener("change", (event) => event.target.matches("[data-submits]") && event.target.form.requestSubmit());
  for (const filters of document.querySelectorAll("[data-filters]"))
    filters.addEventListener("change", (event) => event.target.matches("select") && filters.requestSubmit());
  complete(document.querySelector("[data-complete]"));
  unhide();
  const address = new URL(location.href);
  if (address.searchParams.has("notice")) {
    address.searchParams.delete("notice"); // shown once
    history.replaceState(null, "", address);
  }
}

// Offer terms of a query for its last word: browsers offer the options that contain the whole text.
function complete(field) {
  const options = [...(field?.list?.options ?? [])];
  const terms = options.map((one) => one.value);
  field?.addEventListener("input", () => {
    const before = field.value.slice(0, field.value.lastIndexOf(" ") + 1);
    options.forEach((one, index) => (one.value = before + terms[index]));
  });
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
    return ask(`${form.getAttribute("action")}?${new URLSearchParams(new FormData(form, event.submitter))}`);
  }
  if (form.getAttribute("method") !== "post") return;
  event.preventDefault();
  await send(form, event.submitter);
}

// The URL without empty parameters.
function tidy(form) {
  const empty = [...form.elements].filter((one) => one.name && !one.value);
  for (const one of empty) one.disabled = true;
  setTimeout(() => empty.forEach((one) => (one.disabled = false)));
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
    say("The dashboard is not responding. The change may or may not have been made.");
  }
  button?.removeAttribute("aria-busy");
  if (button) button.disabled = false;
  if (wasFocused) button.focus(); // a disabled button loses the focus
  if (page) show(page, answer, form);
}

/** Show a confirmation as a dialog; for any other page see `land`. */
function show(page, answer, form = null) {
  const sheet = page.querySelector("[data-sheet]");
  if (sheet) open(document.importNode(sheet, true));
  else land(page, answer, form);
}

/** Show the page that a form has led to: update this page, or load another one. */
function land(page, answer, form = null) {
  document.getElementById("dialog").close();
  const to = new URL(answer.url);
  to.searchParams.delete("notice");
  const isRefused = page.querySelector("#notice [data-kind=refused]") || answer.status >= 400;
  const isHere = to.pathname === location.pathname;
  const news = page.getElementById("notice");
  if (!news || (!isHere && !isRefused)) {
    location.assign(answer.redirected && answer.ok ? answer.url : to); // includes the notice
    return;
  }
  const box = page.querySelector("#notice .notice, main > .notice");
  document.getElementById("notice").replaceChildren(...(box ? [document.importNode(box, true)] : []));
  unhide();
  document.getElementById("notice").scrollIntoView({ block: "nearest" });
  if (isRefused) return showErrors(page, form); // keep the values of the form
  clear();
  swap(page, form);
  requestUpdate();
}

/** Replace a form by the same one with errors at its fields. */
function showErrors(page, form) {
  const id = form?.getAttribute("id"); // form.id may be its field with that name
  const fresh = id && page.querySelector(`#${id}:has([aria-invalid])`);
  if (!fresh) return;
  form.replaceWith(document.importNode(fresh, true));
  document.querySelector("[aria-invalid]").focus();
}

function say(text) {
  const box = document.createElement("div");
  box.className = "notice n-refused";
  box.textContent = text;
  document.getElementById("notice").replaceChildren(box);
}

/** Show a page as a dialog. */
async function ask(address) {
  try {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    show(parse(await answer.text()), answer);
  } catch {
    say("The dashboard is not responding. Nothing was changed.");
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
