// Putting what a newer page says in the place of what this one says: only what differs, and without taking anything away
// from whoever reads, types or is about to click.

const said = new Map(); // the id of a region -> what the server said last
const listeners = [];

export const onSwap = (listener) => listeners.push(listener);

export function parse(html) {
  return new DOMParser().parseFromString(html, "text/html"); // runs nothing
}

/** Take the regions of `page` that are live and differ, but for those in which somebody is at work: unless it is the one around
 * `sent`, a form that has done its work. */
export function swap(page, sent = null) {
  let changed = false;
  for (const fresh of page.querySelectorAll("[data-live][id]")) {
    const old = document.getElementById(fresh.id);
    if (!old) continue;
    const text = fresh.outerHTML;
    if (said.get(fresh.id) === text || (!(sent && old.contains(sent)) && isAtWork(old))) continue;
    said.set(fresh.id, text);
    replace(old, document.importNode(fresh, true));
    changed = true;
  }
  if (changed) for (const listener of listeners) listener();
  return changed;
}

/** Forget what was said: for a page that is another one now. */
export const forget = () => said.clear();

function isAtWork(region) {
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

// The same thing in another copy: by its address or its form if it has one, else by its place.
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
