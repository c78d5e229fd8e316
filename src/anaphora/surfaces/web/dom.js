// Elements out of data. Text becomes a text node and nothing else: no markup is ever parsed, no
// style attribute or event attribute is set, and a link leads nowhere but into this page.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element. Functions under `on…` listen, `true` sets a bare attribute, null leaves out. */
export function h(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function s(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    put(element, name, value);
  }
  add(element, children);
  return element;
}

function put(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (typeof value === "function") {
    element.addEventListener(name.slice(2), value);
    return;
  }
  if (/^on/i.test(name) || name === "style" || name === "srcdoc") {
    throw new TypeError(`${name} is no attribute for data`);
  }
  if (name === "href" && !/^(#|\.\/|\/docs$)/.test(value)) {
    throw new TypeError("links lead into this page");
  }
  if (name === "value" && "value" in element && !(element instanceof SVGElement)) {
    element.value = value;
    return;
  }
  element.setAttribute(name, value === true ? "" : String(value));
}

/** Append children: nodes, strings, numbers; lists are flattened, null and false left out. */
export function add(element, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/** Replace what is in an element. */
export function fill(element, ...children) {
  element.replaceChildren();
  return add(element, children);
}

/** Text as the user's words: it keeps its lines, and its direction stays inside it. */
export function said(text, tag = "p", attributes = {}) {
  return h(tag, { ...attributes, class: `said ${attributes.class ?? ""}`.trim(), dir: "auto" }, text);
}

/** What a text without a name is called, and whether that is all of it. */
export function firstWords(text) {
  const line = text.trim().replace(/\s+/g, " ");
  if (line.length <= 90) return { name: line || "(empty)", whole: true };
  return { name: `${line.split(" ").slice(0, 9).join(" ").slice(0, 90)} …`, whole: false };
}

/** The same with the words that matched marked; `matches` are places of code points. */
export function marked(text, matches = []) {
  const letters = [...text];
  const parts = [];
  let at = 0;
  for (const [start, end] of matches) {
    if (start < at) continue;
    parts.push(letters.slice(at, start).join(""), h("mark", null, letters.slice(start, end).join("")));
    at = end;
  }
  parts.push(letters.slice(at).join(""));
  return h("p", { class: "said", dir: "auto" }, parts);
}

/** The same, with only its beginning until it is asked for. */
export function saidLong(text, limit = 1500) {
  if (text.length <= limit) return said(text);
  const shown = said(`${text.slice(0, limit)}…`);
  const more = h("button", { type: "button", class: "quiet small", onclick: () => {
    shown.textContent = text;
    more.remove();
  } }, `Show all ${count(text.length)} characters`);
  return h("div", null, shown, more);
}

/** Say something to who listens instead of looking. */
export function announce(text) {
  const place = document.getElementById("said");
  place.textContent = "";
  requestAnimationFrame(() => { place.textContent = text; });
}

const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const MOMENT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const WHOLE = new Intl.NumberFormat();

/** A time of the wire (RFC 3339) as a <time>; nothing for null. */
export function when(text, { day = false } = {}) {
  if (!text) return null;
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return h("span", null, text);
  return h("time", { datetime: text, title: text }, (day ? DAY : MOMENT).format(at));
}

/** A whole number with its thousands apart. */
export function count(number) {
  return WHOLE.format(number);
}

/** "1 turn", "2 turns". */
export function many(number, word, plural = `${word}s`) {
  return `${count(number)} ${number === 1 ? word : plural}`;
}

/** A score, three places. */
export function score(number) {
  return number === null || number === undefined ? "–" : number.toFixed(3);
}

/** Bytes in the unit that people read. */
export function size(bytes) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let at = 0;
  let value = bytes;
  while (value >= 1000 && at < units.length - 1) {
    value /= 1000;
    at += 1;
  }
  return `${at === 0 ? value : value.toFixed(1)} ${units[at]}`;
}

/** Seconds as people read them: "0.4 ms", "12 ms", "3.1 s". */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "–";
  if (seconds < 0.01) return `${(seconds * 1000).toFixed(1)} ms`;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  return `${seconds.toFixed(1)} s`;
}

/** A hash of this page: the view's path and its parameters, both escaped. */
export function to(parts, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "" && value !== false) query.set(name, value);
  }
  const path = parts.map((part) => encodeURIComponent(wellFormed(part))).join("/");
  const text = query.toString();
  return `#/${path}${text ? `?${text}` : ""}`;
}

/** A lone surrogate cannot stand in an address; it becomes the replacement sign. */
export function wellFormed(text) {
  return String(text).replace(/[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g, "\uFFFD");
}
