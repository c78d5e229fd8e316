// The picture of a project: layers of nodes, importers above what they import.
//
// Cycles are broken by the greedy order of Eades, Lin and Smyth (1993); layers are longest paths;
// within layers nodes stand at the barycentre of their neighbours (Sugiyama, Tagawa, Toda 1981).

import { h, s } from "./dom.js";

const HEIGHT = 40;
const GAP = { x: 16, y: 52 };
const ROOM = 12;
const WIDEST = 1010;

/** The map as an SVG figure; `chosen(node)` is called for a node that is pressed. */
export function drawn(map, chosen) {
  const names = shortNames(map.nodes);
  const layout = placed(map.nodes, map.links, names);
  const edges = s("g", { class: "edges" });
  const nodes = s("g", { class: "nodes" });
  const picture = s("svg", {
    viewBox: `0 0 ${layout.width} ${layout.height}`, width: layout.width, height: layout.height,
    role: "group", "aria-label": "Map of the project", "aria-describedby": "map-hint",
  }, edges, nodes);
  const lines = map.links.map((link) => edge(link, layout));
  edges.append(...lines.map((one) => one.element));
  const boxes = layout.order.map((node) => box(node, layout.at.get(node.path), names.get(node.path), map.links));
  nodes.append(...boxes);
  let held = null;
  const light = (path) => {
    picture.classList.toggle("lit", path !== null);
    const near = new Set([path]);
    for (const { link, element } of lines) {
      const from = link.subject === path;
      const into = link.target === path;
      element.classList.toggle("out", from);
      element.classList.toggle("in", into);
      if (from) near.add(link.target);
      if (into) near.add(link.subject);
      if (from || into) edges.append(element);
    }
    boxes.forEach((one, at) => one.classList.toggle("near", near.has(layout.order[at].path)));
  };
  const choose = (at) => {
    held = layout.order[at].path;
    boxes.forEach((one, other) => one.setAttribute("aria-pressed", String(other === at)));
    light(held);
    chosen(layout.order[at]);
  };
  boxes.forEach((one, at) => {
    one.setAttribute("tabindex", at === 0 ? "0" : "-1");
    one.addEventListener("pointerenter", () => light(layout.order[at].path));
    one.addEventListener("pointerleave", () => light(held));
    one.addEventListener("focus", () => light(layout.order[at].path));
    one.addEventListener("blur", () => light(held));
    one.addEventListener("click", () => choose(at));
    one.addEventListener("keydown", (event) => key(event, at));
  });
  const key = (event, at) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose(at);
      return;
    }
    const next = neighbour(event.key, layout, at);
    if (next === null) return;
    event.preventDefault();
    boxes[at].setAttribute("tabindex", "-1");
    boxes[next].setAttribute("tabindex", "0");
    boxes[next].focus();
    boxes[next].scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  return {
    names,
    picture: h("figure", { class: "map" },
      h("div", { class: "map-frame" }, picture),
      h("figcaption", { id: "map-hint", class: "faint small" }, "Tab goes to the map, arrow keys go from node to node, Enter chooses one.")),
  };
}

function box(node, at, name, links) {
  const to = links.filter((link) => link.subject === node.path).length;
  const from = links.filter((link) => link.target === node.path).length;
  const files = node.kind === "module" ? `${node.files} ${node.files === 1 ? "file" : "files"}` : node.kind;
  return s("g", {
    class: `node ${node.kind}`, role: "button", "aria-pressed": "false", transform: `translate(${at.x} ${at.y})`,
    "aria-label": `${node.path}, ${files}, imports ${to}, imported by ${from}`,
  }, s("title", null, node.path),
  s("rect", { width: at.width, height: HEIGHT, rx: 8 }),
  s("text", { x: at.width / 2, y: 17, class: "name" }, name),
  s("text", { x: at.width / 2, y: 32, class: "files" }, files));
}

function edge(link, layout) {
  const from = layout.at.get(link.subject);
  const to = layout.at.get(link.target);
  const back = from.layer >= to.layer;
  const x1 = from.x + from.width / 2;
  const x2 = to.x + to.width / 2;
  const [y1, y2] = back ? [from.y, to.y + HEIGHT] : [from.y + HEIGHT, to.y];
  const bend = Math.max(18, Math.abs(y2 - y1) * 0.45) * (back ? -1 : 1);
  const element = s("path", {
    d: `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`,
    "stroke-width": Math.min(6, 1 + Math.log2(link.count) * 0.8).toFixed(2), class: back ? "edge back" : "edge",
  });
  return { link, element };
}

/** Paths without the folder that all linked ones share. */
function shortNames(nodes) {
  const deep = nodes.map((node) => node.path).filter((path) => path.includes("/"));
  const heads = deep.map((path) => path.split("/"));
  let shared = 0;
  while (heads.length > 1 && heads.every((parts) => parts.length > shared + 1 && parts[shared] === heads[0][shared])) shared += 1;
  return new Map(nodes.map((node) => {
    const parts = node.path.split("/");
    const name = parts.length > shared && node.path.includes("/") ? parts.slice(shared).join("/") : node.path;
    return [node.path, name.length > 30 ? `…${name.slice(-29)}` : name];
  }));
}

function placed(nodes, links, names) {
  const linked = new Set(links.flatMap((link) => [link.subject, link.target]));
  const order = acyclic(nodes.filter((node) => linked.has(node.path)).map((node) => node.path), links);
  const layers = ordered(layered(order, links), links);
  const width = (path) => Math.max(64, Math.round((names.get(path) ?? path).length * 7.8) + 20);
  const rows = layers.flatMap((layer, at) => wrapped(layer, width).map((row) => ({ row, at })));
  const alone = nodes.map((node) => node.path).filter((path) => !linked.has(path));
  rows.push(...wrapped(alone, width).map((row) => ({ row, at: layers.length })));
  const sizes = rows.map(({ row }) => row.reduce((sum, path) => sum + width(path) + GAP.x, -GAP.x));
  const full = Math.max(320, ...sizes) + 2 * ROOM;
  const at = new Map();
  let y = ROOM;
  rows.forEach(({ row, at: layer }, index) => {
    let x = (full - sizes[index]) / 2;
    for (const path of row) {
      at.set(path, { x: Math.round(x), y, width: width(path), layer, row: index });
      x += width(path) + GAP.x;
    }
    y += HEIGHT + (rows[index + 1]?.at === layer ? GAP.y / 2 : GAP.y);
  });
  const byPath = new Map(nodes.map((node) => [node.path, node]));
  return { at, width: full, height: y - GAP.y + ROOM, order: rows.flatMap(({ row }) => row.map((path) => byPath.get(path))) };
}

/** An order in which as little import weight as possible points backwards. */
function acyclic(paths, links) {
  const left = new Set(paths);
  const head = [];
  const tail = [];
  const degree = (path, end, other) => links.reduce((sum, link) => sum + (link[end] === path && left.has(link[other]) && link[other] !== path ? link.count : 0), 0);
  while (left.size) {
    let moved = true;
    while (moved) {
      moved = false;
      for (const path of [...left]) {
        const out = degree(path, "subject", "target");
        const into = degree(path, "target", "subject");
        if (out === 0) tail.unshift(path);
        else if (into === 0) head.push(path);
        else continue;
        left.delete(path);
        moved = true;
      }
    }
    let best = null;
    let most = -Infinity;
    for (const path of left) {
      const gain = degree(path, "subject", "target") - degree(path, "target", "subject");
      if (gain > most) [best, most] = [path, gain];
    }
    if (best !== null) {
      head.push(best);
      left.delete(best);
    }
  }
  return [...head, ...tail];
}

function layered(order, links) {
  const place = new Map(order.map((path, at) => [path, at]));
  const layer = new Map(order.map((path) => [path, 0]));
  for (const path of order) {
    for (const link of links) {
      if (link.subject === path && place.get(link.target) > place.get(path)) {
        layer.set(link.target, Math.max(layer.get(link.target), layer.get(path) + 1));
      }
    }
  }
  const layers = [];
  for (const path of order) (layers[layer.get(path)] ??= []).push(path);
  return layers;
}

function ordered(layers, links) {
  const middle = new Map();
  const note = () => layers.forEach((layer) => layer.forEach((path, at) => middle.set(path, (at + 0.5) / layer.length)));
  note();
  for (let sweep = 0; sweep < 12; sweep += 1) {
    for (const layer of layers) {
      const centre = new Map(layer.map((path) => [path, barycentre(path, links, middle)]));
      layer.sort((a, b) => centre.get(a) - centre.get(b) || (a < b ? -1 : 1));
      layer.forEach((path, at) => middle.set(path, (at + 0.5) / layer.length));
    }
  }
  return layers;
}

function barycentre(path, links, middle) {
  let sum = 0;
  let weight = 0;
  for (const link of links) {
    const other = link.subject === path ? link.target : link.target === path ? link.subject : null;
    if (other === null || !middle.has(other)) continue;
    sum += middle.get(other) * link.count;
    weight += link.count;
  }
  return weight ? sum / weight : middle.get(path);
}

function wrapped(paths, width) {
  const rows = [];
  let row = [];
  let used = 0;
  for (const path of paths) {
    if (row.length && used + width(path) > WIDEST) {
      rows.push(row);
      [row, used] = [[], 0];
    }
    row.push(path);
    used += width(path) + GAP.x;
  }
  if (row.length) rows.push(row);
  return rows;
}

/** The node that an arrow key goes to from the one at `at`; null for none. */
function neighbour(key, layout, at) {
  const here = layout.at.get(layout.order[at].path);
  const centre = (one) => one.x + one.width / 2;
  const sideways = { ArrowLeft: -1, ArrowRight: 1 }[key];
  if (sideways) return layout.order[at + sideways] ? at + sideways : null;
  const down = { ArrowUp: -1, ArrowDown: 1 }[key];
  if (!down) return null;
  let best = null;
  layout.order.forEach((node, other) => {
    const one = layout.at.get(node.path);
    if (one.row !== here.row + down) return;
    const far = Math.abs(centre(one) - centre(here));
    if (best === null || far < best.far) best = { far, other };
  });
  return best?.other ?? null;
}
