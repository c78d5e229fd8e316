// The timeline: what was said, remembered, noted and done, day by day, the last day first.

import { api } from "../api.js";
import { add, fill, h, many, to, when } from "../dom.js";
import { badge, empty, heading, into, waiting } from "../parts.js";
import { firstRun } from "../intake.js";

const LOOKED_AT = 200;
const DAYS = 14;

export const view = {
  title: "Timeline",
  show(main, _, signal) {
    const place = h("div", null, waiting());
    add(main, heading("Timeline"), place);
    const fetched = () => into(place, signal, () => days(signal), fetched);
    fetched();
    return null;
  },
};

async function days(signal) {
  const [threads, memories, notes, diary, known] = await Promise.all([
    api.threads({ limit: LOOKED_AT }, signal), api.memories({ limit: LOOKED_AT }, signal),
    api.notes({ limit: LOOKED_AT }, signal), api.diary({ limit: LOOKED_AT }, signal),
    api.projects(signal)]);
  const projects = new Map(known.map((one) => [one.id, one.name]));
  const all = [
    ...threads.items.map((one) => event(one.updated, "conversation", one.title || one.preview, to(["conversations", one.conversation_id]), many(one.turn_count, "turn"))),
    ...memories.items.map((one) => event(one.created_at, "memory", one.text, to(["memories", one.id]), one.path)),
    ...notes.map((one) => event(one.created_at, one.kind.replaceAll("_", " "), one.text, to(["notes", one.id]), projects.get(one.project))),
    ...diary.map((one) => event(one.created_at, "diary", one.summary, to(["notes", one.id]), one.subject)),
  ].sort((one, other) => other.at - one.at);
  if (!all.length) return firstRun();
  const byDay = new Map();
  for (const one of all) {
    const day = new Date(one.at.getFullYear(), one.at.getMonth(), one.at.getDate()).getTime();
    byDay.set(day, [...(byDay.get(day) ?? []), one]);
  }
  const groups = [...byDay];
  const shown = h("div", { class: "days" });
  let next = 0;
  const foot = h("div", null);
  const more = () => {
    add(shown, groups.slice(next, next + DAYS).map(([day, events]) => ofDay(day, events)));
    next += DAYS;
    fill(foot, next < groups.length ? h("button", { type: "button", onclick: more }, "Show earlier days") : null);
  };
  more();
  const cut = threads.cursor || memories.cursor ? h("p", { class: "summary" }, `Of the last ${LOOKED_AT} conversations and memories.`) : null;
  return [cut, shown, foot];
}

function event(time, kind, text, href, beside) {
  return { at: new Date(time), time, kind, text, href, beside };
}

function ofDay(day, events) {
  return h("section", { class: "day" }, h("h2", null, when(new Date(day).toISOString(), { day: true })),
    events.length ? h("ol", { class: "plain tight" }, events.map((one) => h("li", { class: "event" },
      badge(one.kind, "kind"), h("a", { href: one.href, class: "said", dir: "auto" }, short(one.text)),
      one.beside ? h("span", { class: "faint small", dir: "auto" }, one.beside) : null))) : empty("Nothing."));
}

function short(text) {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > 160 ? `${line.slice(0, 159)}…` : line || "(empty)";
}
