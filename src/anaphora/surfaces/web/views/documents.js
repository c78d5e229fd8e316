// Documents: files whose text is kept, and the text of one, section by section.

import { api } from "../api.js";
import { add, h, many, saidLong, to, when } from "../dom.js";
import { ask, badge, empty, heading, into, meta, paged, refresh, row, trouble, waiting } from "../parts.js";
import { choose } from "../intake.js";
import { menu } from "../menu.js";
import { toast } from "../toast.js";

const LOOKED_AT = 500;

export const view = {
  title: "Documents",
  show(main, route, signal) {
    const place = h("div", null, waiting());
    if (route.rest[0]) {
      const [id, number] = route.rest[0].split("#");
      add(main, h("p", { class: "back" }, h("a", { href: "#/documents" }, "All documents")), place);
      into(place, signal, () => whole(id, number, signal), () => refresh());
    } else {
      add(main, heading("Documents", h("button", { type: "button", class: "primary", onclick: choose }, "Add files")),
        h("p", { class: "lead" }, "Contracts, manuals, mails, lists: PDF, Word, HTML, mail, calendar, Markdown, text and CSV files that you drop on this page are stored here, and found with everything else."), place);
      into(place, signal, () => all(signal), () => refresh());
    }
    return null;
  },
};

async function all(signal) {
  const documents = await api.documents({ limit: LOOKED_AT }, signal);
  if (!documents.length) return [empty("There are no documents yet.", "Drop files or a folder on this page, or choose them with “Add files”.")];
  return [h("p", { class: "summary" }, documents.length < LOOKED_AT ? many(documents.length, "document") : `The newest ${LOOKED_AT} documents`),
    paged(documents, (part) => part.map(rowOf))];
}

function rowOf(document) {
  return row({
    href: to(["documents", document.id]), title: document.title, text: document.title === document.name ? null : document.name,
    marks: document.superseded_by ? [badge("replaced", "warn")] : [],
    facts: [badge(document.format, "kind"), document.pages ? many(document.pages, "page") : many(document.sections, "section"), when(document.date ?? document.added_at, { day: true })],
    actions: menu(`Actions: ${document.title.slice(0, 40)}`, [{ text: "Open", href: to(["documents", document.id]) }, { text: "Forget", does: () => forget(document), danger: true }]),
  });
}

async function whole(id, number, signal) {
  const [one, sections] = await Promise.all([api.document(id, signal), api.documentSections(id, signal)]);
  const shown = number ? sections.filter((section) => String(section.number) === number) : sections;
  return [heading(one.title, h("button", { type: "button", class: "quiet danger", onclick: () => forget(one) }, "Forget")), facts(one),
    number ? h("p", null, h("a", { href: to(["documents", id]) }, "All of it")) : null,
    h("ol", { class: "plain" }, shown.map((section) => h("li", { class: "card" },
      meta(badge(`section ${section.number}`), section.page ? badge(`page ${section.page}`) : null,
        section.heading.length ? h("span", { class: "faint", dir: "auto" }, section.heading.join(" > ")) : null),
      saidLong(section.text, 6000))))].filter(Boolean);
}

function facts(one) {
  return meta(when(one.date ?? one.added_at, { day: true }), one.pages ? h("span", null, many(one.pages, "page")) : null, h("span", null, many(one.sections, "section")),
    one.author ? h("span", { dir: "auto" }, one.author) : null, one.superseded_by ? badge("replaced", "warn") : null,
    one.tags.map((tag) => badge(tag, "tag")), h("span", { class: "faint", dir: "auto" }, one.name));
}

/** Forget all versions at once; the toast takes it back. */
async function forget(document) {
  try {
    await api.forget(document.id, { undoable: true });
  } catch (error) {
    await ask({ title: "It was not forgotten", body: trouble(error), confirm: "Close" });
    return;
  }
  toast(`Forgotten, with its versions: “${document.title}”.`, { undo: () => api.undoForget(document.id) });
  if (location.hash.startsWith("#/documents/")) location.hash = "#/documents";
  else refresh();
}
