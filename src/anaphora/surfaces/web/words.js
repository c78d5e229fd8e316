// The words in which users read what the server names otherwise, each in one place.

const TYPES = { semantic: "fact", episodic: "event", procedural: "how-to" };
const NOTE_KINDS = { code_insight: "about the code" };

/** What a kind of memory is called. */
export function typeWord(type) {
  return TYPES[type] ?? NOTE_KINDS[type] ?? String(type).replaceAll("_", " ");
}

/** Kinds of memories to choose from: [value, text]. */
export const TYPE_CHOICES = [["semantic", "Fact"], ["episodic", "Event"], ["procedural", "How-to"]];

/** What a namespace is called. */
export function spaceWord(name) {
  return name === "default" ? "Main memory" : name;
}

/** The last part of a path or an address: what a project is called. */
export function projectWord(place) {
  return place.split(/[\\/]/).filter(Boolean).pop() ?? "";
}
