// The core block: what every session is told, and in which order.

import { api } from "../api.js";
import { add, h, many, saidLong, to, when } from "../dom.js";
import { badge, deeds, empty, heading, into, meta, waiting } from "../parts.js";

export const view = {
  title: "Core block",
  show(main, route, signal) {
    const place = h("div", null, waiting());
    add(main, h("p", { class: "back" }, h("a", { href: "#/memories" }, "All memories")), heading("Core block"),
      h("p", { class: "lead" }, "What every session is told: what is pinned, in this order, then rules and preferences. A memory that is replaced hands its pin on."),
      place);
    const fetched = () => into(place, signal, async () => block(await api.core(signal), fetched), fetched);
    fetched();
    return null;
  },
};

function block(found, again) {
  if (!found.entries.length && !found.left_out.length) return empty("Nothing is in the core block yet.", "Pin a memory, or remember a rule or a preference.");
  const pinned = [...found.entries, ...found.left_out].filter((one) => one.position !== null).length;
  const rows = (entries) => h("ol", { class: "plain core" }, entries.map((one) => h("li", { class: "card" }, card(one, pinned, again))));
  return [h("p", { class: "summary" }, `${many(found.entries.length, "memory", "memories")}, ${found.tokens} of ${many(found.budget, "token")}`),
    rows(found.entries),
    found.left_out.length ? [h("h2", null, "Did not fit"), rows(found.left_out)] : null];
}

function card(entry, pinned, again) {
  const report = h("div", { "aria-live": "polite" });
  const name = entry.text.slice(0, 40);
  const small = deeds(report, again);
  const deed = (text, does, off = false) => small(text, does, { "aria-label": `${text}: ${name}`, disabled: off });
  const { id, position } = entry;
  return [saidLong(entry.text, 600),
    meta(h("a", { href: to(["memories", id]) }, entry.path ?? "The memory"), badge(position === null ? entry.kind : `pinned ${position}`, position === null ? "plain" : "good"),
      ["since ", when(entry.since)], entry.previous ? ["before: ", entry.previous.text] : null,
      entry.sources.length ? ["from ", entry.sources.join(", ")] : null,
      entry.conversation_id ? h("a", { href: to(["conversations", entry.conversation_id], { turn: entry.turn_index }) }, "where it was said") : null),
    h("div", { class: "actions" }, position === null
      ? [deed("Pin", () => api.pin(id)), deed("Leave out", () => api.unpin(id))]
      : [deed("Up", () => api.pin(id, position - 1), position === 1), deed("Down", () => api.pin(id, position + 1), position === pinned),
        deed("Unpin", () => api.unpin(id))]),
    report];
}
