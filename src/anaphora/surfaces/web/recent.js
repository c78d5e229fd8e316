// What happened lately: conversations, memories, documents, notes and the diary as one list.

import { api } from "./api.js";
import { h, many, to, when } from "./dom.js";
import { learnTitles } from "./titles.js";
import { badge } from "./parts.js";
import { typeWord } from "./words.js";

/** Events with their time, the last first, out of at most `limit` of each kind; `more` if any was cut. */
export async function recentEvents(limit, signal) {
  const [threads, memories, notes, diary, documents, known] = await Promise.all([
    api.threads({ limit }, signal), api.memories({ limit }, signal), api.notes({ limit }, signal),
    api.diary({ limit }, signal), api.documents({ limit }, signal), api.projects(signal)]);
  learnTitles(threads.items);
  const projects = new Map(known.map((project) => [project.id, project.name]));
  const events = [
    ...threads.items.map((thread) => event(thread.updated, "conversation", thread.title || thread.preview, to(["conversations", thread.conversation_id]), many(thread.turn_count, "message"))),
    ...memories.items.map((record) => event(record.created_at, "memory", record.text, to(["memories", record.id]), record.path)),
    ...documents.map((document) => event(document.added_at, "document", document.title, to(["documents", document.id]), document.pages ? many(document.pages, "page") : null)),
    ...notes.map((note) => event(note.created_at, typeWord(note.kind), note.text, to(["notes", note.id]), projects.get(note.project))),
    ...diary.map((entry) => event(entry.created_at, "diary", entry.summary, to(["notes", entry.id]), entry.subject)),
  ].sort((one, other) => other.at - one.at);
  return { events, more: Boolean(threads.cursor || memories.cursor) };
}

function event(time, kind, text, href, beside) {
  return { at: new Date(time), time, kind, text, href, beside };
}

/** One event in a line; with its day where the list is not one of a day. */
export function eventRow(entry, { day = false } = {}) {
  return h("li", { class: "event" }, badge(entry.kind, "kind"),
    h("a", { href: entry.href, class: "where", dir: "auto" }, short(entry.text)),
    h("span", { class: "faint small beside", dir: "auto" }, entry.beside, entry.beside && day ? " · " : null, day ? when(entry.time, { day: true }) : null));
}

function short(text) {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > 160 ? `${line.slice(0, 159)}…` : line || "(empty)";
}
