// Documents: files whose text is kept, and the text of one, section by section.

import { api } from "../api.js";
import { add, announce, fill, h, many, saidLong, to, when } from "../dom.js";
import { ask, badge, empty, heading, into, meta, offerUndo, refresh, trouble, waiting } from "../parts.js";

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
      add(main, heading("Documents"),
        h("p", { class: "lead" }, "Contracts, manuals, mails: PDF, Word and mail files that are dropped on this page are kept here, and found with everything else."), place);
      into(place, signal, () => all(signal), () => refresh());
    }
    return null;
  },
};

async function all(signal) {
  const found = await api.documents({ limit: LOOKED_AT }, signal);
  if (!found.length) return [empty("There are no documents yet.", "Drop a PDF, Word or mail file on this page.")];
  return [h("p", { class: "summary" }, many(found.length, "document")),
    h("ul", { class: "plain" }, found.map((one) => h("li", null, h("article", { class: "card" },
      h("header", null, h("a", { class: "where", dir: "auto", href: to(["documents", one.id]) }, one.title), badge(one.format, "kind")),
      facts(one),
      h("div", { class: "actions" }, h("button", { type: "button", class: "quiet small danger", "aria-label": `Forget: ${one.title.slice(0, 40)}`, onclick: () => forget(one) }, "Forget"))))))];
}

async function whole(id, number, signal) {
  const [one, sections] = await Promise.all([api.document(id, signal), api.documentSections(id, signal)]);
  const shown = number ? sections.filter((section) => String(section.number) === number) : sections;
  return [heading(one.title), facts(one),
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

async function forget(one) {
  const place = h("div", null);
  const gone = await ask({
    title: "Forget this document?",
    body: [h("blockquote", { dir: "auto" }, one.title), h("p", { class: "faint" }, "All of its versions go, after a day for good."), place],
    confirm: "Forget it",
    danger: true,
    deed: async () => {
      try {
        await api.forget(one.id, { undoable: true });
      } catch (error) {
        fill(place, trouble(error));
        throw error;
      }
    },
  });
  if (!gone) return;
  announce("The document was forgotten");
  offerUndo("The document will be erased in a day.", () => api.undoForget(one.id));
  refresh();
}
