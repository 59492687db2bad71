// Bring the live regions of the page up to date, without disturbing a user who reads, types, selects or is about to click: elements that
// stay are changed in place, so that they keep focus, selection, scroll position, and whether they are open.

const listeners = [];

export const onSwap = (listener) => listeners.push(listener);

export function parse(html) {
  return new DOMParser().parseFromString(html, "text/html"); // runs no scripts
}

/** Parse regions without a page around them. */
export function parseRegions(html) {
  const template = document.createElement("template"); // a row of a table needs no table here
  template.innerHTML = html;
  return template.content;
}

/** The versions of the regions as they are shown; the server sends only those that differ. */
export const versions = () => [...document.querySelectorAll("[data-live][data-version]")].map((one) => one.dataset.version).join(" ");

/** Change the live regions to those of `page`, except those that the user is editing, unless it is the one around
 * `sent`, a form that has done its work. */
export function swap(page, sent = null) {
  const active = document.activeElement;
  let changed = false;
  for (const fresh of page.querySelectorAll("[data-live][id]")) {
    const old = document.getElementById(fresh.id);
    const isSent = Boolean(sent && old?.contains(sent));
    if (!old || (!isSent && (old.dataset.version === fresh.dataset.version || isBusy(old)))) continue;
    morph(old, document.importNode(fresh, true));
    if (isSent) sent.reset();
    changed = true;
  }
  if (active !== document.activeElement && active?.isConnected) active.focus({ preventScroll: true }); // it was moved
  if (changed) for (const listener of listeners) listener();
  return changed;
}

function isBusy(region) {
  const active = document.activeElement;
  if (active && region.contains(active) && active.matches("input:not([type=checkbox]), textarea, select")) return true;
  return [...region.querySelectorAll("input:not([type=hidden], [name=id]), textarea")].some(isTouched);
}

function isTouched(field) {
  if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
  return field.value !== field.defaultValue;
}

const BY_SCRIPT = ["open", "data-here"]; // attributes that the user or a script has set

function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeName !== fresh.nodeName) return void old.replaceWith(fresh);
  if (old.nodeType !== Node.ELEMENT_NODE) return void (old.data = fresh.data);
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && !BY_SCRIPT.includes(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  morphChildren(old, fresh);
}

function morphChildren(old, fresh) {
  const kept = new Set([...fresh.children].map(key));
  for (const one of [...old.children]) if (key(one) && !kept.has(key(one))) one.remove();
  const known = new Map([...old.children].map((one) => [key(one), one]));
  let at = old.firstChild; // everything before it is up to date
  for (const one of [...fresh.childNodes]) {
    const name = key(one);
    const same = name ? known.get(name) : at?.nodeName === one.nodeName && !key(at) && at;
    known.delete(name);
    if (same && same === at) at = at.nextSibling;
    else old.insertBefore(same || one, at);
    if (same) morph(same, one);
  }
  while (at) {
    const rest = at;
    at = at.nextSibling;
    rest.remove();
  }
}

/** What an element is about: rows and entries of lists are known by their first link. */
function key(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return "";
  return node.id || (node.matches("tr, li") && node.querySelector("a[href]")?.getAttribute("href")) || "";
}
