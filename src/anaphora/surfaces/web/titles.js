// What things are called: conversations by their titles, memories by their path or first words.

import { api } from "./api.js";
import { firstWords } from "./dom.js";

// By namespace and id, as they were last seen.
const titles = new Map();

/** What a memory or note is called. */
export function titleOf(record) {
  return record.path || firstWords(record.text).name;
}

/** What a conversation is called; "Conversation" where nothing is known of it. */
export function conversationTitle(id) {
  return titles.get(`${api.namespace}\n${id}`) || "Conversation";
}

/** Note the titles of conversations that were listed. */
export function learnTitles(threads) {
  for (const thread of threads) titles.set(`${api.namespace}\n${thread.conversation_id}`, thread.title || firstWords(thread.preview).name);
}

/** Ask for the titles of conversations of which none is known. */
export async function fetchTitles(ids, signal) {
  const unknown = ids.filter((id) => id && !titles.has(`${api.namespace}\n${id}`));
  if (!unknown.length) return;
  try {
    learnTitles((await api.threads({ limit: 1000 }, signal)).items);
  } catch (error) {
    if (error?.name === "AbortError") throw error;
    // What is known of them says enough without their titles.
  }
  for (const id of unknown) if (!titles.has(`${api.namespace}\n${id}`)) titles.set(`${api.namespace}\n${id}`, "");
}
