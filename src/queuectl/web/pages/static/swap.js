// Replace the regions of the page that differ in a newer version, without disturbing a user who reads, types or is about to click.

const lastHtml = new Map(); // by ID of a region: the last HTML from the server
const listeners = [];

export const onSwap = (listener) => listeners.push(listener);

export function parse(html) {
  return new DOMParser().parseFromString(html, "text/html"); // runs no scripts
}

/** Replace the live regions of `page` that differ, except those that the user is editing, unless it is the one around
 * `sent`, a form that has done its work. */
export function swap(page, sent = null) {
  let changed = false;
  for (const fresh of page.querySelectorAll("[data-live][id]")) {
    const old = document.getElementById(fresh.id);
    if (!old) continue;
    const text = fresh.outerHTML;
    if (lastHtml.get(fresh.id) === text || (!(sent && old.contains(sent)) && isBusy(old))) continue;
    lastHtml.set(fresh.id, text);
    replace(old, document.importNode(fresh, true));
    changed = true;
  }
  if (changed) for (const listener of listeners) listener();
  return changed;
}

/** Forget the stored HTML: the page is another one now. */
export const forget = () => lastHtml.clear();

function isBusy(region) {
  const active = document.activeElement;
  if (active && region.contains(active) && active.matches("input:not([type=checkbox]), textarea, select")) return true;
  for (const field of region.querySelectorAll("input:not([type=hidden]), textarea, select")) if (isTouched(field)) return true;
  const selection = document.getSelection();
  return Boolean(selection && !selection.isCollapsed && region.contains(selection.anchorNode));
}

function isTouched(field) {
  if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
  if (field.tagName === "SELECT") return false;
  return field.value !== field.defaultValue;
}

function replace(old, fresh) {
  const open = [old, ...old.querySelectorAll("details")].filter((one) => one.open && one.id).map((one) => one.id);
  const scrolled = [old, ...old.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
  const active = old.contains(document.activeElement) ? pathTo(document.activeElement, old) : null;
  old.replaceWith(fresh);
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  [fresh, ...fresh.querySelectorAll(".scroll")].forEach((one, index) => {
    if (scrolled[index]) one.scrollLeft = scrolled[index];
  });
  if (active) find(fresh, active)?.focus({ preventScroll: true });
}

// The same element in another copy of the page: by its link or form, else by its position.
function pathTo(element, region) {
  const all = [...region.querySelectorAll("a, button, input, select, summary")];
  return { href: element.getAttribute("href"), action: element.form?.getAttribute("action"), text: element.textContent, index: all.indexOf(element) };
}

function find(region, { href, action, text, index }) {
  const all = [...region.querySelectorAll("a, button, input, select, summary")];
  if (href) return all.find((one) => one.getAttribute("href") === href);
  if (action) return all.find((one) => one.form?.getAttribute("action") === action && one.textContent === text);
  return all[index];
}
