// The keyboard: / or Ctrl K to search from anywhere, arrows through a list, Ctrl Z to undo.

import { closeMenusOnClick } from "./menu.js";
import { undoLast } from "./toast.js";

const TEXT = "input:not([type=checkbox], [type=radio]), textarea, select";

/** Listen for the keys of the page. */
export function listenForKeys() {
  closeMenusOnClick();
  addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]")) return;
    const typing = event.target instanceof Element && event.target.matches(TEXT);
    const control = event.ctrlKey || event.metaKey;
    const key = event.key.toLowerCase();
    let handled = false;
    if ((control && key === "k") || (key === "/" && !typing && !control && !event.altKey)) {
      toSearch();
      handled = true;
    } else if (control && key === "z" && !typing) handled = undoLast();
    else if ((key === "arrowdown" || key === "arrowup") && !control && !event.altKey) handled = step(event.target, key === "arrowdown" ? 1 : -1);
    if (handled) event.preventDefault();
  });
}

function toSearch() {
  const focus = () => {
    const box = document.querySelector("#main form.search [name=q]");
    box?.focus();
    box?.select();
  };
  if (location.hash.startsWith("#/search") || location.hash === "") {
    focus();
    return;
  }
  addEventListener("anaphora:shown", focus, { once: true });
  location.hash = "#/search";
}

/** From one entry of a list to the next one, and from a search box to the first. */
function step(from, by) {
  if (!(from instanceof Element) || from.closest(".menu")) return false;
  const lists = ".rows-list, .hits";
  const box = from.matches("form.search [type=search]") && by > 0;
  const list = box ? document.querySelector(`#main :is(${lists})`) : from.closest(lists);
  if (!list) return false;
  const links = [...list.querySelectorAll("a.where")];
  const at = links.findIndex((link) => link === from || link.closest("li").contains(from));
  const next = links[box ? 0 : at + by];
  next?.focus();
  return Boolean(next);
}
