// A drawing that is wider than its place begins at the job that the page is about.

export function start() {
  const root = document.querySelector(".family .root");
  const place = root?.closest(".scroll");
  if (place) place.scrollLeft = root.x.baseVal.value + root.width.baseVal.value / 2 - place.clientWidth / 2;
}
