// Meaning: texts that came in are found by their words at once; what makes them found by their
// meaning is worked out behind, and the page shows how far that is.

import { api } from "./api.js";
import { announce, fill, h, many } from "./dom.js";

const place = document.getElementById("work");
const WAIT = 1;
let running = null;

/** Work out the meaning of what waits for it; one run at a time. Resolves once nothing waits. */
export function finishVectors() {
  running ??= run().finally(() => { running = null; });
  return running;
}

async function run() {
  const space = api.namespace;
  let most = 0;
  let ready = false;
  try {
    while (!ready && space === api.namespace) {
      const stats = await api.stats();
      const left = stats.pending + stats.sections_pending;
      most = Math.max(most, left);
      if (left) show(left, most);
      // The server goes on with it while it is waited for.
      ready = (await api.ready(WAIT)).ready;
    }
    if (most && ready) {
      announce("Everything is found by its meaning now");
      dispatchEvent(new CustomEvent("anaphora:vectors"));
    }
  } catch {
    // Nothing is lost: the next search goes on with it, and says what is missing.
  } finally {
    place.hidden = true;
    place.replaceChildren();
  }
}

function show(left, most) {
  const done = most - left;
  if (place.hidden) {
    fill(place, h("span", null), h("progress", { "aria-label": "Texts whose meaning is worked out" }),
      h("button", { type: "button", class: "quiet small", onclick: () => place.classList.add("put-away") }, "Hide"));
    place.classList.remove("put-away");
    place.hidden = false;
    announce(`The meaning of ${many(left, "text")} is being worked out`);
  }
  const bar = place.querySelector("progress");
  bar.max = most;
  bar.value = done;
  place.firstElementChild.textContent = `Working out the meaning of ${many(most, "text")}: ${done} done. Their words are found already.`;
}
