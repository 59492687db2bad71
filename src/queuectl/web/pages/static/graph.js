// Scroll a wide dependency graph to the job of the page.

export function start() {
  const root = document.querySelector(".graph .root");
  const place = root?.closest(".scroll");
  if (place) place.scrollLeft = root.x.baseVal.value + root.width.baseVal.value / 2 - place.clientWidth / 2;
}
