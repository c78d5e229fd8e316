// A menu behind one button: what can be done with the thing of a row. Arrow keys go through it.

import { h } from "./dom.js";

/** A button that opens a menu. Each item has `text` and either `does` or `href`; null is left out. */
export function menu(name, items) {
  const entries = items.filter(Boolean).map(({ text, does, href, danger }) => href
    ? h("a", { role: "menuitem", tabindex: "-1", href }, text)
    : h("button", { type: "button", role: "menuitem", tabindex: "-1", class: danger ? "danger" : null, onclick: () => { close(); does(); } }, text));
  const list = h("div", { class: "menu-items", role: "menu", "aria-label": name, hidden: true }, entries);
  const button = h("button", { type: "button", class: "quiet small more-button", "aria-label": name, title: "What can be done with it", "aria-haspopup": "menu", "aria-expanded": "false" }, "⋯");
  const place = h("div", { class: "menu" }, button, list);
  const open = () => {
    list.hidden = false;
    button.setAttribute("aria-expanded", "true");
    // A menu near the lower edge of the window opens upwards.
    place.classList.toggle("upwards", button.getBoundingClientRect().bottom + list.offsetHeight + 8 > innerHeight);
    entries[0]?.focus();
  };
  const close = () => {
    list.hidden = true;
    button.setAttribute("aria-expanded", "false");
    if (place.contains(document.activeElement)) button.focus();
  };
  button.addEventListener("click", () => (list.hidden ? open() : close()));
  place.addEventListener("focusout", (event) => { if (!list.hidden && event.relatedTarget && !place.contains(event.relatedTarget)) close(); });
  place.addEventListener("keydown", (event) => {
    const at = entries.indexOf(document.activeElement);
    const next = { ArrowDown: (at + 1) % entries.length, ArrowUp: (at - 1 + entries.length) % entries.length, Home: 0, End: entries.length - 1 }[event.key];
    if (list.hidden) return;
    if (event.key === "Escape") close();
    else if (next !== undefined) entries[next].focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return place;
}

/** Close the open menu where a click goes elsewhere. */
export function closeMenusOnClick() {
  addEventListener("pointerdown", (event) => {
    for (const list of document.querySelectorAll(".menu-items:not([hidden])")) {
      if (!list.parentElement.contains(event.target)) {
        list.hidden = true;
        list.parentElement.querySelector("button").setAttribute("aria-expanded", "false");
      }
    }
  });
}
