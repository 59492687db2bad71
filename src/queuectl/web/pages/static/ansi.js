// ANSI colors as CSS classes and exact colors; other sequences are dropped. The same rules as in pages/log.py.

const SEQUENCE = /\x1b\[([0-9;:]{0,64})m|\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;
const PLAIN = { 1: ["bold", "b"], 2: ["dim", "d"], 3: ["italic", "i"], 4: ["under", "u"] };
const OFF = { 22: ["bold", "dim"], 23: ["italic"], 24: ["under"], 39: ["fg"], 49: ["bg"] };
const LEVELS = [0, 95, 135, 175, 215, 255]; // of red, green and blue in the cube of 216 colors

/** Apply the exact colors of a part of the page, which the content security policy forbids as attributes. */
export function color(root) {
  for (const one of root.querySelectorAll("[data-fg]")) one.style.color = one.dataset.fg;
  for (const one of root.querySelectorAll("[data-bg]")) one.style.backgroundColor = one.dataset.bg;
}

export class Painter {
  /** `style`: a class, or for fg and bg a class and a color. */
  constructor(style = []) {
    this.style = new Map(style);
  }

  copy() {
    return new Painter(this.style);
  }

  /** Append the text of one line to `element`: as text, never as markup. */
  paint(line, element) {
    line = line.replace(/\r+$/, "");
    line = line.slice(line.lastIndexOf("\r") + 1);
    let start = 0;
    for (const found of line.matchAll(SEQUENCE)) {
      this.#piece(line.slice(start, found.index), element);
      start = found.index + found[0].length;
      if (found[1] !== undefined) this.#read(found[1].split(/[;:]/).map(Number));
    }
    this.#piece(line.slice(start), element);
  }

  #piece(text, element) {
    if (!text) return;
    if (!this.style.size) return element.append(text);
    const span = document.createElement("span");
    span.className = [...this.style.values()].map((value) => value.split(" ")[0]).join(" ");
    for (const name of ["fg", "bg"]) {
      const exact = this.style.get(name)?.split(" ")[1];
      if (!exact) continue;
      span.dataset[name] = exact;
      span.style[name === "fg" ? "color" : "backgroundColor"] = exact;
    }
    span.textContent = text;
    element.append(span);
  }

  #read(codes) {
    while (codes.length) {
      const code = codes.shift();
      if (code === 0) this.style.clear();
      else if (PLAIN[code]) this.style.set(PLAIN[code][0], `t-${PLAIN[code][1]}`);
      else if (OFF[code]) OFF[code].forEach((name) => this.style.delete(name));
      else if (code === 38 || code === 48) this.#extended(code === 38 ? "fg" : "bg", codes);
      else
        for (const [name, first] of [["fg", 30], ["bg", 40], ["fg", 90], ["bg", 100]])
          if (code >= first && code < first + 8) this.style.set(name, `t-${name}${code - first + (first >= 90 ? 8 : 0)}`);
    }
  }

  #extended(name, codes) {
    const kind = codes.shift();
    if (kind === 5 && codes.length) {
      const code = Math.min(codes.shift(), 255);
      this.style.set(name, code < 16 ? `t-${name}${code}` : exactly(name, rgb(code)));
    } else if (kind === 2 && codes.length >= 3) this.style.set(name, exactly(name, codes.splice(0, 3).map((one) => Math.min(one, 255))));
  }
}

function rgb(code) {
  if (code >= 232) return Array(3).fill(8 + 10 * (code - 232));
  return [36, 6, 1].map((step) => LEVELS[Math.floor((code - 16) / step) % 6]);
}

const exactly = (name, parts) => `t-${name}${nearest(...parts)} #${parts.map((one) => one.toString(16).padStart(2, "0")).join("")}`;

function nearest(red, green, blue) {
  const brightest = Math.max(red, green, blue);
  if (brightest - Math.min(red, green, blue) < 40) return brightest < 64 ? 0 : brightest < 128 ? 8 : brightest < 208 ? 7 : 15;
  const bits = (red * 2 > brightest ? 1 : 0) + (green * 2 > brightest ? 2 : 0) + (blue * 2 > brightest ? 4 : 0);
  return bits + (brightest > 200 ? 8 : 0);
}
