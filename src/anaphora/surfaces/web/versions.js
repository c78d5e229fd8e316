// What replaced a hit and what it replaced, each as one sentence that reads on its own.

import { h, to, when } from "./dom.js";

const QUOTED = /^(?:on (\d{4}-\d\d-\d\d) )?"(.*)"$/s;

/** What replaced a hit (null where it holds), and its other notes: what it replaced and contradicts. */
export function versionNotes(hit) {
  const lines = (hit.versions ?? []).map((line) => [line, part(line)]);
  const newer = lines.filter(([, { kind }]) => kind === "older");
  const others = lines.filter(([, { kind }]) => kind !== "older");
  // The last of several is the one whose id comes with the hit.
  const replaced = newer.length ? replacedBy(newer.at(-1)[1], hit.older_than)
    : hit.current ? null : h("p", { class: "version gone" }, h("b", null, "No longer holds"), link(hit.older_than, ": see what replaced it"));
  return [replaced, others.map(([line, parts]) => sentence(line, parts))];
}

function part(line) {
  for (const [kind, begin] of [["older", /^older: /], ["former", /^(?:until (?:\d{4}-\d\d-\d\d)|before): /], ["open", /^contradict(?:s|ed), not settled: /]]) {
    if (!begin.test(line)) continue;
    const [, day = "", words] = QUOTED.exec(line.replace(begin, "")) ?? [];
    if (words !== undefined) return { kind, day, words };
  }
  return { kind: "other" };
}

function replacedBy({ day, words }, id) {
  return h("p", { class: "version gone" }, h("b", null, "Replaced"), day ? [" on ", when(day, { day: true })] : null, " by ", quote(words, id));
}

function sentence(line, { kind, day, words }) {
  if (kind === "former") return h("p", { class: "version" }, h("b", null, "Replaces"), day ? [" (", when(day, { day: true }), ")"] : null, " ", quote(words));
  if (kind === "open") {
    return h("p", { class: "version open" }, h("b", null, "Contradicts"), " ", quote(words), day ? [" of ", when(day, { day: true })] : null, ". ",
      h("a", { href: "#/contradictions" }, "Decide which holds"));
  }
  return h("p", { class: "version", dir: "auto" }, line.charAt(0).toUpperCase() + line.slice(1));
}

function quote(words, id = "") {
  const text = h("q", { dir: "auto" }, words);
  return id ? link(id, text) : text;
}

function link(id, content) {
  if (!id) return null;
  const [, thread, index] = /^(.*)#(\d+)$/s.exec(id) ?? [];
  return h("a", { href: thread ? to(["conversations", thread], { turn: index }) : to(["memories", id]) }, content);
}
