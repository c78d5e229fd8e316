// What was just done, in a bar at the lower edge, with a button that takes it back. It covers no
// dialog and stays until it is closed or something else is done.

import { announce, fill, h } from "./dom.js";

const place = document.getElementById("toast");

/** Show what was done. `undo` takes it back, `more` are nodes after the text. */
export function toast(text, { undo = null, more = null } = {}) {
  const back = undo && h("button", { type: "button", class: "small undo", onclick: async () => {
    back.disabled = true;
    try {
      await undo();
      close();
      announce("It is back");
      dispatchEvent(new CustomEvent("anaphora:again"));
    } catch (error) {
      fill(place, h("span", null, `It was not taken back: ${error?.message || "the server refused"}. Load the page again, then try once more.`), dismiss);
    }
  } }, "Undo");
  const dismiss = h("button", { type: "button", class: "quiet small", "aria-label": "Close", onclick: close }, "✕");
  fill(place, h("span", { dir: "auto" }, text), more, back, dismiss);
  place.hidden = false;
  announce(undo ? `${text} Undo: Control Z` : text);
}

/** Take back what the toast tells of; whether there was anything. */
export function undoLast() {
  const back = place.hidden ? null : place.querySelector(".undo:not(:disabled)");
  back?.click();
  return Boolean(back);
}

function close() {
  place.hidden = true;
  place.replaceChildren();
}
