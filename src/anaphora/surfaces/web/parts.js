// Pieces that several views show: bars of factors, notes, errors, forms, questions before a deed.

import { Problem } from "./api.js";
import { add, announce, fill, h, s, score } from "./dom.js";

const MEANS = {
  words: "words of the question that stand in it (BM25)",
  meaning: "closeness of meaning (cosine)",
  context: "what the turns right before and after hold",
  time: "said in the time that the question names",
  speaker: "said by whom the question is about",
  personal: "the speaker tells something of themselves, and the question names a speaker",
  standing: "a rule or wish that still stands",
  unanswered: "it only asks, or says that it does not know",
  similarity: "how well it answers, from meaning and words, 0 to 1",
  decay: "what age has left of it (half-life by type)",
  reinforcement: "raised because it was said again",
  age: "what age has left of it",
  restated: "raised because it was said again",
  confidence: "how sure its link to the focus is",
  recency: "how lately it changed",
  size: "what its length costs",
  role_fit: "whether its kind fits what the focus asks for",
};

/** Factors as horizontal bars, each with its name and value; `scale` is what fills the whole bar. */
export function bars(factors, { scale = null, caption = "Factors" } = {}) {
  const entries = Object.entries(factors ?? {});
  if (!entries.length) return h("p", { class: "faint" }, "No factors were given.");
  const full = scale ?? Math.max(1e-9, ...entries.map(([, value]) => Math.abs(value)));
  return h("table", { class: "bars" },
    h("caption", { class: "visually-hidden" }, caption),
    h("tbody", null, entries.map(([name, value]) => h("tr", null,
      h("th", { scope: "row", title: MEANS[name] ?? null }, name.replaceAll("_", " ")),
      h("td", { class: "number" }, score(value)),
      h("td", null, bar(value, full)),
    ))));
}

function bar(value, full) {
  const width = Math.max(value === 0 ? 0 : 0.6, Math.min(100, (Math.abs(value) / full) * 100));
  return s("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true", class: value < 0 ? "minus" : null },
    s("rect", { class: "bar-room", x: 0, y: 0, width: 100, height: 8 }),
    s("rect", { class: "bar-value", x: 0, y: 0, width, height: 8 }));
}

/** What the names of factors mean. */
export function legend(names) {
  const known = names.filter((name) => MEANS[name]);
  if (!known.length) return null;
  return h("details", { class: "legend" }, h("summary", null, "What the factors mean"),
    h("dl", null, known.map((name) => [h("dt", null, name.replaceAll("_", " ")), h("dd", null, MEANS[name])])));
}

/** What was unavailable while something was found. That vectors are missing is said beside it. */
export function degraded(list) {
  const entries = (list ?? []).filter((entry) => !waitsForVectors(entry) && !isLoading(entry));
  if (entries.length === 0) return null;
  return h("div", { class: "note warn" }, h("strong", null, "Not everything was available. "),
    h("ul", null, entries.map((entry) => h("li", null, h("b", null, entry.part), `: ${entry.reason}`))));
}

/** Whether it says that a part is not there yet, and will be in a moment. */
export function isLoading(entry) {
  return entry.part === "reader" && /still loading/.test(entry.reason);
}

/** Whether it says that texts are found by their words alone so far. */
export function waitsForVectors(entry) {
  return entry.part === "embeddings" && /no vector yet|still loading/.test(entry.reason);
}

// What to do where the server has named no step.
const START = "Start Anaphora again on this computer (anaphora start), then try again.";
const ELSE = "Try again. If it comes back, load the page anew; nothing that was stored is lost.";

/** An error as the server told it, or in plain words; what to do next, and a way to try again. */
export function trouble(error, again = null) {
  const known = error instanceof Problem;
  const title = known ? error.title : "That did not work";
  const detail = known ? error.detail : String(error?.message ?? error);
  const next = known && error.status === 0 ? START : (known && error.next) || ELSE;
  announce(`${title}. ${detail} ${next}`);
  return h("div", { class: "note bad", role: "alert" },
    h("strong", null, title), detail ? h("p", null, detail) : null,
    known && error.fields.length ? h("ul", null, error.fields.map((field) => h("li", null, field))) : null,
    h("p", { class: "next" }, next),
    again ? h("button", { type: "button", onclick: again }, "Try again") : null);
}

/**
 * A maker of small buttons: each does what it says and calls `again`, or shows its trouble in `report`.
 * While one works, none of the same maker can be pressed.
 */
export function deeds(report, again) {
  const buttons = [];
  return (text, does, { disabled = false, ...attributes } = {}) => {
    const button = h("button", { type: "button", class: "quiet small", ...attributes, disabled, onclick: async () => {
      const enabled = buttons.filter((each) => !each.disabled);
      for (const each of enabled) each.disabled = true;
      try {
        await does();
        announce("Done");
        again();
      } catch (error) {
        for (const each of enabled) each.disabled = false;
        fill(report, trouble(error));
      }
    } }, text);
    buttons.push(button);
    return button;
  };
}

/** That there is nothing, and what would make something. */
export function empty(text, ...hints) {
  return h("div", { class: "empty" }, h("p", null, text), hints.map((hint) => h("p", { class: "faint" }, hint)));
}

/** That something is being fetched. */
export function waiting(text = "Asking …") {
  return h("p", { class: "waiting", role: "status" }, h("span", { class: "dots", "aria-hidden": "true" }), text);
}

/** A labelled control. */
export function field(label, control, hint = null) {
  return h("label", { class: "field" }, h("span", null, label), control, hint ? h("small", { class: "faint" }, hint) : null);
}

/** A labelled box to tick. */
export function tick(label, attributes) {
  return h("label", { class: "tick" }, h("input", { type: "checkbox", ...attributes }), h("span", null, label));
}

/** A select of [value, text] pairs. */
export function choice(attributes, options, chosen) {
  return h("select", attributes, options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)));
}

/** A small word in a rounded box; `kind` is plain, good, warn or bad. */
export function badge(text, kind = "plain", title = null) {
  return h("span", { class: `badge ${kind}`, title }, text);
}

/** Show rows as a table that scrolls in its own frame. */
export function table(caption, heads, rows) {
  return h("div", { class: "frame", tabindex: "0", role: "region", "aria-label": caption },
    h("table", { class: "rows" }, h("caption", { class: "visually-hidden" }, caption),
      h("thead", null, h("tr", null, heads.map((head) => h("th", { scope: "col", class: head.number ? "number" : null }, head.name ?? head)))),
      h("tbody", null, rows)));
}

/** Run `work` and show what comes of it in `place`; the last call of a place wins. */
export async function into(place, signal, work, again = null) {
  const turn = Symbol("turn");
  place.turn = turn;
  place.setAttribute("aria-busy", "true");
  try {
    const made = await work();
    if (place.turn === turn && !signal.aborted) fill(place, made);
  } catch (error) {
    if (error?.name === "AbortError" || signal.aborted || place.turn !== turn) return;
    fill(place, trouble(error, again));
  } finally {
    if (place.turn === turn) place.removeAttribute("aria-busy");
  }
}

/**
 * A question in a dialog. `body` are nodes; `deed(form)` runs when it is confirmed, and what it
 * returns is shown in the dialog (no node: the dialog closes). Resolves once it is closed.
 */
export function ask({ title, body, confirm = "OK", danger = false, cancel = "Cancel", deed = () => null }) {
  const dialog = document.getElementById("dialog");
  const before = document.activeElement;
  return new Promise((resolve) => {
    let done = false;
    const outcome = h("div", { class: "outcome", "aria-live": "polite" });
    const sure = h("button", { type: "submit", class: danger ? "danger" : "primary" }, confirm);
    const no = cancel && h("button", { type: "button", onclick: () => dialog.close() }, cancel);
    const form = h("form", { method: "dialog", onsubmit: async (event) => {
      event.preventDefault();
      sure.disabled = true;
      try {
        const shown = await deed(form);
        done = true;
        if (!(shown instanceof Node || Array.isArray(shown))) {
          dialog.close();
          return;
        }
        fill(form, h("h2", { id: "dialog-title" }, title), shown,
          h("div", { class: "actions" }, h("button", { type: "button", class: "primary", onclick: () => dialog.close() }, "Close")));
        form.querySelector(".actions button").focus();
      } catch (error) {
        fill(outcome, trouble(error));
        sure.disabled = false;
      }
    } }, h("h2", { id: "dialog-title" }, title), body, outcome, h("div", { class: "actions" }, no, sure));
    fill(dialog, form);
    // The event comes after the closing: by then the next question may stand in the same element.
    const closed = () => {
      if (form.isConnected && dialog.open) return;
      dialog.removeEventListener("close", closed);
      if (form.isConnected) dialog.replaceChildren();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
      resolve(done);
    };
    dialog.addEventListener("close", closed);
    dialog.showModal();
  });
}

/** Show all anew. */
export function refresh() {
  dispatchEvent(new CustomEvent("anaphora:again"));
}

/** A list of dense rows; `rows` are list items. */
export function rowsList(rows, name = null) {
  return h("ul", { class: "rows-list", "aria-label": name }, rows);
}

/**
 * One row: a title that leads to the thing, its text in what room is left, marks, facts at the end,
 * and what can be done with it. Only `href` and `title` are needed.
 */
export function row({ href, title, text = null, marks = [], facts = [], before = null, actions = null }) {
  return h("li", { class: "row" }, before,
    h("div", { class: "row-main" }, h("a", { class: "where", dir: "auto", href }, title), marks,
      text ? h("span", { class: "row-text", dir: "auto" }, text) : null),
    h("span", { class: "row-facts" }, facts), actions);
}

/** Items in parts of `size`: the first at once, the next at a click. `show(items)` gives their rows. */
export function paged(items, show, size = 50) {
  const list = rowsList(show(items.slice(0, size)));
  let next = size;
  const more = h("button", { type: "button", hidden: items.length <= size, onclick: () => {
    add(list, show(items.slice(next, next + size)));
    next += size;
    more.hidden = next >= items.length;
    announce(`${Math.min(next, items.length)} of ${items.length} are shown`);
  } }, "Show more");
  return [list, more];
}

/** The heading of a view, which takes the focus when one comes to it. */
export function heading(text, ...beside) {
  return h("div", { class: "heading" }, h("h1", { tabindex: "-1" }, text), add(h("div", { class: "beside" }), beside));
}

/** Small facts in a row: each string, or list with a string in it, is one of them. */
export function meta(...facts) {
  return h("p", { class: "meta" }, facts.map((fact) => {
    const words = typeof fact === "string" || (Array.isArray(fact) && fact.some((part) => typeof part === "string"));
    return words ? h("span", null, fact) : fact;
  }));
}
