// Copy buttons: [data-copy] has the text, or the ID of the element with the text.

export function start() {
  for (const one of document.querySelectorAll("[data-copy][hidden]")) one.hidden = false;
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (button) copy(document.getElementById(button.dataset.copy).textContent, button);
  });
}

export async function copy(text, button) {
  const label = button.textContent;
  button.textContent = (await write(text)) ? "Copied" : "Not copied";
  setTimeout(() => (button.textContent = label), 1500);
}

async function write(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Without HTTPS, browsers have no clipboard but this one.
    const field = document.createElement("textarea");
    field.value = text;
    (document.querySelector("dialog[open]") ?? document.body).append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}
