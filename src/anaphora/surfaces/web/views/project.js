// Projects: a recall package for a task, and the map of what imports what.

import { api } from "../api.js";
import { add, announce, count, fill, h, many, saidLong, score, to, when } from "../dom.js";
import { drawn } from "../map.js";
import { badge, bars, choice, degraded, empty, field, heading, into, legend, meta, table, tick, waiting } from "../parts.js";

const TRUST = { strong: "good", partial: "warn", weak: "bad" };
const TRUST_MEANS = {
  strong: "What the task needs is most likely here.",
  partial: "Some of what the task needs is here.",
  weak: "Little or nothing here belongs to the task: look elsewhere too.",
};

export const view = {
  title: "Projects",
  show(main, route, signal) {
    const place = h("div", null, waiting());
    add(main, heading("Projects"), place);
    let update = () => true;
    into(place, signal, async () => {
      const projects = await api.projects(signal);
      if (!projects.length) return empty("No project is here yet.", "A coding agent that is set up with Anaphora adds the folder it works in. By hand: run anaphora project index in the folder.");
      const body = h("div", null);
      const frame = h("div", null);
      update = (next) => { shown(frame, body, projects, next, signal); return true; };
      update(route);
      return [frame, body];
    });
    return (next) => update(next);
  },
};


function shown(frame, body, projects, route, signal) {
  const asked = route.parameters.get("project");
  const onMap = route.rest[0] === "map";
  const known = projects.find((one) => one.id === asked || one.name === asked);
  const project = known ?? (onMap || projects.length === 1 ? projects[0] : null);
  const names = projects.map((one) => [one.id, one.name]);
  const select = choice({ "aria-label": "Project" }, onMap ? names : [["", "All projects"], ...names], project?.id ?? "");
  const here = (part) => (part === (onMap ? "map" : "") ? "page" : null);
  fill(frame,
    h("div", { class: "controls tabs" },
      field("Project", select),
      h("nav", { "aria-label": "Of the project" },
        h("a", { href: to(["project"], { project: project?.id }), "aria-current": here("") }, "Find files for a task"),
        h("a", { href: to(["project", "map"], { project: project?.id }), "aria-current": here("map") }, "Map"))),
    project ? meta(h("code", { class: "id" }, project.root), many(project.files, "file"),
      many(project.sections, "section"), ["indexed ", when(project.indexed_at)]) : null);
  select.onchange = () => { location.hash = to(onMap ? ["project", "map"] : ["project"], { project: select.value }); };
  if (onMap) {
    showMap(body, project, route.parameters.get("within"), signal);
    return;
  }
  showRecall(body, project, route.parameters, signal);
}

// The recall package.

function showRecall(body, project, parameters, signal) {
  const form = h("form", { class: "search" },
    field("What are you working on?", h("textarea", { name: "focus", rows: 2, required: true, dir: "auto", value: parameters.get("focus") ?? "", placeholder: "One or several statements, a line each" })),
    h("div", { class: "controls" },
      field("At most, in tokens", h("input", { type: "number", name: "budget", min: 120, max: 50000, step: 20, class: "short", value: parameters.get("budget") ?? "2000" })),
      tick("Show the parts of each score", { name: "sources", checked: parameters.get("sources") === "1" }),
      h("button", { type: "submit", class: "primary" }, "Find")));
  const place = h("div", { class: "results" });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const data = Object.fromEntries(new FormData(form));
    const asked = to(["project"], { project: project?.id, focus: data.focus, budget: data.budget === "2000" ? "" : data.budget, sources: data.sources ? "1" : "" });
    if (asked === location.hash) go();
    else location.hash = asked;
  });
  fill(body, form, place);
  const go = () => {
    const data = Object.fromEntries(new FormData(form));
    const focus = data.focus.split("\n").map((line) => line.trim()).filter(Boolean);
    if (!focus.length) {
      fill(place, empty("Say what the task is, and see what an agent would be given for it."));
      return;
    }
    fill(place, waiting("Looking through the project …"));
    into(place, signal, async () => packaged(await api.recallContext({
      focus, project: project?.id ?? null, budget: Number(data.budget) || 2000, include_sources: Boolean(data.sources),
    }, signal)), go);
  };
  go();
}

function packaged(found) {
  announce(`${found.quality} package: ${many(found.primary_targets.length, "target")}`);
  const signals = [...new Set(found.primary_targets.flatMap((one) => Object.keys(one.signals)))];
  return [
    h("div", { class: `quality note ${TRUST[found.quality]}` }, badge(found.quality, TRUST[found.quality]), " ",
      TRUST_MEANS[found.quality], h("span", { class: "faint" }, ` ${count(found.tokens)} of ${count(found.budget)} tokens.`)),
    degraded(found.degraded),
    found.brief.length ? h("ul", { class: "brief" }, found.brief.map((line) => h("li", { dir: "auto" }, line))) : null,
    h("h2", null, "Look here first"),
    found.primary_targets.length ? h("ol", { class: "hits" }, found.primary_targets.map((one) => h("li", null, target(one)))) : empty("No results."),
    legend(signals),
    h("h2", null, "Memories of the project"),
    found.memories.length ? h("ul", { class: "plain" }, found.memories.map((one) => h("li", { class: "card" }, memory(one)))) : h("p", { class: "faint" }, "None fits."),
    found.graph.length ? [h("h2", null, "Relations"), table("Relations near the focus", ["From", "Relation", "To", "State"],
      found.graph.map((one) => h("tr", null, h("td", null, one.subject), h("td", null, one.predicate.replaceAll("_", " ")), h("td", null, one.object), h("td", null, one.status))))] : null,
    found.history.length ? [h("h2", null, "What was before"), h("ul", { class: "plain" }, found.history.map((one) => h("li", { class: "card" },
      meta(badge(one.kind), when(one.at)), saidLong(one.text))))] : null,
  ];
}

function lines(one) {
  if (!one.start_line) return null;
  return h("span", { class: "faint number" }, one.end_line && one.end_line !== one.start_line ? `lines ${one.start_line}–${one.end_line}` : `line ${one.start_line}`);
}

function target(one) {
  return h("article", { class: "card hit" },
    h("header", null, one.path ? h("b", { class: "where" }, one.path) : null, badge(one.kind), one.role !== "unknown" ? badge(one.role.replaceAll("_", " ")) : null, lines(one),
      h("span", { class: "score" }, score(one.score))),
    one.title && one.title !== one.path ? h("p", { dir: "auto" }, one.title) : null,
    one.reason ? h("p", { class: "faint", dir: "auto" }, one.reason) : null,
    Object.keys(one.signals).length ? bars(one.signals, { scale: 1, caption: "Signals of the score" }) : null);
}

function memory(one) {
  return [meta(badge(one.kind), one.path ? h("b", { class: "where" }, one.path) : null, lines(one), when(one.created_at),
    one.importance ? badge(`importance ${one.importance}`) : null, h("span", { class: "score" }, score(one.score))),
  one.title && one.title !== one.path ? h("p", { dir: "auto" }, h("b", null, one.title)) : null, saidLong(one.text, 700)];
}

// The map.

function showMap(body, project, within, signal) {
  fill(body, waiting("Drawing the map …"));
  into(body, signal, async () => {
    const found = await api.projectMap(project.id, within, signal);
    if (!within && found.nodes.length === 1) {
      return mapOf(await api.projectMap(project.id, found.nodes[0].path, signal), project);
    }
    return mapOf(found, project);
  }, () => showMap(body, project, within, signal));
}

function mapOf(found, project) {
  const detail = h("section", { class: "detail card", "aria-live": "polite" }, h("p", { class: "faint" }, "Choose a node to see what it imports and who imports it."));
  const { picture, names } = drawn(found, (node) => fill(detail, about(node, found, project, names)));
  const up = found.within !== null ? h("p", { class: "back" }, h("a", { href: to(["project", "map"], { project: project.id }) }, "All folders")) : null;
  const what = found.within === null ? "folders" : `files of ${found.within}`;
  announce(`The map shows ${found.nodes.length} ${what}`);
  return [up, degraded(found.degraded),
    h("p", { class: "summary" }, `${count(found.nodes.length)} ${what}, ${many(found.links.length, "link")}. A line goes down from who imports to what is imported; the thicker, the more imports.`),
    found.nodes.length ? h("div", { class: "map-room" }, picture, detail) : empty("There is nothing in it."),
    asText(found)];
}

function about(node, found, project, names) {
  const side = (title, links, end) => [h("h3", null, title), links.length
    ? h("ul", { class: "plain tight" }, [...links].sort((a, b) => b.count - a.count).map((link) => h("li", null, names.get(link[end]) ?? link[end], " ", h("span", { class: "faint number" }, `×${link.count}`))))
    : h("p", { class: "faint" }, "Nothing.")];
  return [h("h2", { class: "where" }, node.path), node.title ? h("p", { dir: "auto" }, node.title) : null,
    node.kind === "module" ? h("p", null, h("a", { class: "button", href: to(["project", "map"], { project: project.id, within: node.path }) }, `Its ${many(node.files, "file")}`)) : badge(node.kind),
    side("Imports", found.links.filter((link) => link.subject === node.path), "target"),
    side("Imported by", found.links.filter((link) => link.target === node.path), "subject")];
}

function asText(found) {
  const targets = (path) => found.links.filter((link) => link.subject === path).map((link) => link.target);
  return h("details", null, h("summary", null, "The map as a table"),
    table("The map as a table", [found.within === null ? "Folder" : "File", { name: "Files", number: true }, "Imports from"],
      found.nodes.map((node) => h("tr", null, h("th", { scope: "row" }, node.path), h("td", { class: "number" }, node.kind === "module" ? count(node.files) : "–"),
        h("td", null, targets(node.path).join(", ") || "–")))));
}
