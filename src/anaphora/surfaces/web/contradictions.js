// How many contradictions are open, in the list of views; and settling one, with its way back.

import { api } from "./api.js";
import { toast } from "./toast.js";

const MOST = 100;
const DONE = { replaces: "The newer one holds.", both_hold: "Both hold.", wrong: "The newer one is wrong: the older one holds." };

/** Open contradictions, at most a hundred. */
export function openContradictions(signal) {
  return api.contradictions(false, signal, MOST);
}

/** A number of them in words: there may be more than were asked for. */
export function countText(number) {
  return number < MOST ? String(number) : `${MOST}+`;
}

/** Show how many are open wherever it stands on the page; nothing where none is. */
export async function showOpenCount() {
  let pairs = [];
  try {
    pairs = await openContradictions();
  } catch {
    // The view itself says what is wrong.
  }
  document.getElementById("open-contradictions").hidden = pairs.length === 0;
  for (const place of document.querySelectorAll(".open-count")) {
    place.hidden = pairs.length === 0;
    place.textContent = countText(pairs.length);
  }
}

/** Resolve a pair, and offer to undo it. */
export async function settle(pair, verdict) {
  const { newer, older } = pair;
  await api.settle(newer.id, older.id, verdict);
  toast(DONE[verdict], { undo: () => api.reopen(newer.id, older.id) });
  showOpenCount();
}
