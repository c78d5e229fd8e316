// Conversations: a list, and one to read from its first turn to its last.

import { api } from "../api.js";
import { add, announce, fill, h, many, saidLong, to, when } from "../dom.js";
import { ask, empty, field, heading, into, meta, row, rowsList, trouble, waiting } from "../parts.js";
import { choose } from "../intake.js";
import { menu } from "../menu.js";
import { learnTitles } from "../titles.js";

const PAGE = 100;

export const view = {
  title: "Conversations",
  show(main, route, signal) {
    if (route.rest[0]) {
      one(main, route.rest[0], Number(route.parameters.get("turn") ?? -1), signal);
      return (next) => next.rest[0] === route.rest[0] && jump(Number(next.parameters.get("turn") ?? -1));
    }
    list(main, signal);
    return null;
  },
};

function list(main, signal) {
  const place = h("div", null, waiting());
  const input = h("input", { type: "search", placeholder: "Title or words of its last turn", autocomplete: "off" });
  add(main, heading("Conversations"), h("div", { class: "controls" }, field("Narrow the list", input)), place);
  const fetched = () => into(place, signal, async () => {
    const all = [];
    let cursor = null;
    const shown = h("div", { class: "results" });
    const draw = () => {
      const words = input.value.toLowerCase();
      const fits = all.filter((thread) => `${thread.title} ${thread.preview} ${thread.conversation_id}`.toLowerCase().includes(words));
      fill(shown, fits.length ? [
        h("p", { class: "summary" }, cursor ? `${many(fits.length, "conversation")} of the newest ${all.length}` : many(fits.length, "conversation")),
        rows(fits),
      ] : empty(all.length ? "No conversation in this list fits these words." : "There is no conversation here yet.",
        all.length ? "Try fewer words, or search the words of all conversations with Search." : h("button", { type: "button", class: "primary", onclick: choose }, "Import one")),
      cursor ? h("button", { type: "button", onclick: () => more().catch((error) => add(shown, trouble(error))) }, "Show older conversations") : null);
    };
    const more = async () => {
      const page = await api.threads({ limit: PAGE, cursor }, signal);
      learnTitles(page.items);
      all.push(...page.items);
      cursor = page.cursor;
      draw();
    };
    input.oninput = draw;
    await more();
    return shown;
  }, fetched);
  fetched();
}

function rows(threads) {
  const list_ = rowsList(threads.map((thread) => row({
    href: to(["conversations", thread.conversation_id]), title: thread.title || thread.preview || "Conversation", text: thread.title ? thread.preview : null,
    facts: [many(thread.turn_count, "message"), when(thread.updated, { day: true })],
  })));
  list_.classList.add("threads");
  return list_;
}

function one(main, id, turn, signal) {
  const place = h("div", null, waiting());
  add(main, h("p", { class: "back" }, h("a", { href: "#/conversations" }, "All conversations")), place);
  const fetched = () => into(place, signal, async () => {
    const [thread, calls] = await Promise.all([api.thread(id, signal), api.toolCalls(id, signal)]);
    if (!thread) return empty("There is no such conversation.");
    const title = thread.title || thread.turns.find((one) => one.role === "user")?.text.slice(0, 60) || id;
    const sources = [...new Set(thread.turns.map((each) => each.source).filter(Boolean))].map((source) => source.replaceAll("_", " "));
    setTimeout(() => jump(turn), 0);
    return [
      heading(title, h("button", { type: "button", class: "danger quiet", onclick: () => remove(id, title) }, "Delete the conversation")),
      meta(many(thread.turns.length, "message"), ["last ", when(thread.updated)], sources.length ? ["from ", sources.join(", ")] : null, h("details", null, h("summary", null, "Id"), h("code", { class: "id" }, id))),
      calls.length ? h("details", null, h("summary", null, `What was done with tools: ${many(calls.length, "call")}`),
        h("ol", { class: "plain tight calls" }, calls.map((call) => h("li", null, when(call.ts), " ", h("code", { dir: "auto" }, call.text))))) : null,
      h("ol", { class: "turns", start: 0 }, thread.turns.map((one, index) => said(id, one, index))),
    ];
  }, fetched);
  fetched();
}

function said(id, turn, index) {
  const item = h("li", { class: `turn ${turn.role === "user" ? "user" : "other"}`, id: `turn-${index}`, tabindex: "-1" });
  return add(item,
    h("header", null, h("b", { dir: "auto" }, turn.speaker || turn.role),
      turn.speaker ? h("span", { class: "faint" }, turn.role) : null, when(turn.ts),
      h("a", { class: "faint number", href: to(["conversations", id], { turn: index }), "aria-label": `Message ${index + 1}` }, `#${index + 1}`),
      menu(`Actions: message ${index + 1}`, [{ text: "Erase its words …", does: () => redact(id, index, item), danger: true }])),
    saidLong(turn.text, 4000));
}

function jump(index) {
  if (!(index >= 0)) return true;
  const item = document.getElementById(`turn-${index}`);
  document.querySelector(".turn.found")?.classList.remove("found");
  if (!item) return true;
  item.classList.add("found");
  item.scrollIntoView({ block: "center" });
  item.focus({ preventScroll: true });
  return true;
}

function redact(id, index, item) {
  return ask({
    title: `Erase the words of message ${index + 1}?`,
    body: [h("p", null, "They are taken out of the conversation and of every index, for good. Its place, time and role stay. This cannot be undone."),
      h("blockquote", null, saidLong(item.querySelector(".said").textContent, 300))],
    confirm: "Erase them",
    danger: true,
    deed: async () => {
      await api.redact(id, index);
      const thread = await api.thread(id);
      item.replaceWith(said(id, thread.turns[index], index));
      announce(`The words of message ${index + 1} were erased`);
    },
  });
}

async function remove(id, title) {
  const gone = await ask({
    title: "Delete the conversation?",
    body: [h("p", null, "All of its messages go, for good, and so does what only they support: stored answers, traces and facts that were taken out of it. This cannot be undone."),
      h("p", { dir: "auto" }, h("b", null, title))],
    confirm: "Delete it",
    danger: true,
    deed: async () => { await api.deleteThread(id); },
  });
  if (gone) {
    location.hash = "#/conversations";
    announce("The conversation was deleted");
  }
}

