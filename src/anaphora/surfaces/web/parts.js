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

/** What was unavailable while something was found. */
export function degraded(list) {
  if (!list?.length) return null;
  return h("div", { class: "note warn" }, h("strong", null, "Not everything was available. "),
    h("ul", null, list.map((one) => h("li", null, h("b", null, one.part), `: ${one.reason}`))));
}

/** An error as the server told it, or in plain words; with a way to try again. */
export function trouble(error, again = null) {
  const known = error instanceof Problem;
  const title = known ? error.title : "That did not work";
  const detail = known ? error.detail : String(error?.message ?? error);
  announce(`${title}. ${detail}`);
  return h("div", { class: "note bad", role: "alert" },
    h("strong", null, title), detail ? h("p", null, detail) : null,
    known && error.fields.length ? h("ul", null, error.fields.map((one) => h("li", null, one))) : null,
    known && error.status ? h("p", { class: "faint" }, `Status ${error.status}`) : null,
    again ? h("button", { type: "button", onclick: again }, "Try again") : null);
}

/** A maker of small buttons: each does what it says, and shows all again, or its trouble in `report`. */
export function deeds(report, again) {
  return (text, does, attributes = {}) => h("button", { type: "button", class: "quiet small", ...attributes, onclick: async () => {
    try {
      await does();
      announce("Done");
      again();
    } catch (error) {
      fill(report, trouble(error));
    }
  } }, text);
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
 * returns is shown in the dialog (nothing: the dialog closes). Resolves once it is closed.
 */
export function ask({ title, body, confirm = "OK", danger = false, deed }) {
  const dialog = document.getElementById("dialog");
  const before = document.activeElement;
  return new Promise((resolve) => {
    let done = false;
    const outcome = h("div", { class: "outcome", "aria-live": "polite" });
    const sure = h("button", { type: "submit", class: danger ? "danger" : "primary" }, confirm);
    const no = h("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
    const form = h("form", { method: "dialog", onsubmit: async (event) => {
      event.preventDefault();
      sure.disabled = true;
      try {
        const shown = await deed(form);
        done = true;
        if (!shown) {
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

/** Say what was done, with a button that takes it back, until something else is done. */
export function offerUndo(text, undo) {
  const place = document.getElementById("undo");
  const close = () => { place.hidden = true; place.replaceChildren(); };
  const back = h("button", { type: "button", class: "small", onclick: async () => {
    back.disabled = true;
    try {
      await undo();
      close();
      announce("It is back");
      refresh();
    } catch (error) {
      fill(place, h("span", null, error?.message || "That did not work"), dismiss);
    }
  } }, "Undo");
  const dismiss = h("button", { type: "button", class: "quiet small", "aria-label": "Close", onclick: close }, "✕");
  fill(place, h("span", null, text), back, dismiss);
  place.hidden = false;
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
