// What every session begins with, and in which order.

import { api } from "../api.js";
import { add, h, many, saidLong, to, when } from "../dom.js";
import { badge, deeds, empty, heading, into, meta, waiting } from "../parts.js";

export const view = {
  title: "Always included",
  show(main, route, signal) {
    const place = h("div", null, waiting());
    add(main, h("p", { class: "back" }, h("a", { href: "#/memories" }, "All memories")), heading("Always included"),
      h("p", { class: "lead" }, "What your agents know at the start of every session: pinned memories in this order, then rules and preferences. Where a pinned memory is replaced, the new one takes its place."),
      place);
    const fetched = () => into(place, signal, async () => block(await api.core(signal), fetched), fetched);
    fetched();
    return null;
  },
};

function block(core, again) {
  if (!core.entries.length && !core.left_out.length) return empty("Nothing is always included yet.", "Pin a memory, or remember a rule or a preference.");
  const pinned = [...core.entries, ...core.left_out].filter((entry) => entry.position !== null).length;
  const rows = (entries) => h("ol", { class: "plain core" }, entries.map((entry) => h("li", { class: "card" }, card(entry, pinned, again))));
  return [h("p", { class: "summary" }, `${many(core.entries.length, "memory", "memories")}; ${core.tokens} of ${many(core.budget, "token")} are used`),
    rows(core.entries),
    core.left_out.length ? [h("h2", null, "Did not fit"), rows(core.left_out)] : null];
}

function card(entry, pinned, again) {
  const report = h("div", { "aria-live": "polite" });
  const name = entry.text.slice(0, 40);
  const small = deeds(report, again);
  const deed = (text, does, disabled = false) => small(text, does, { "aria-label": `${text}: ${name}`, disabled });
  const { id, position } = entry;
  return [saidLong(entry.text, 600),
    h("footer", null, meta(badge(position === null ? entry.kind : `pinned ${position}`, position === null ? "plain" : "good"), h("a", { href: to(["memories", id]) }, entry.path ?? "Open it"),
      ["since ", when(entry.since, { day: true })], entry.previous ? h("span", null, "replaces ", h("q", { dir: "auto" }, entry.previous.text)) : null,
      entry.sources.length ? ["from ", entry.sources.join(", ")] : null,
      entry.conversation_id ? h("a", { href: to(["conversations", entry.conversation_id], { turn: entry.turn_index }) }, "where it was said") : null),
    h("div", { class: "actions" }, position === null
      ? [deed("Pin", () => api.pin(id)), deed("Leave out", () => api.unpin(id))]
      : [deed("Up", () => api.pin(id, position - 1), position === 1), deed("Down", () => api.pin(id, position + 1), position === pinned),
        deed("Unpin", () => api.unpin(id))])),
    report];
}
