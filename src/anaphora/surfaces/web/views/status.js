// Status: what works, how fast, how much. Latencies are from this page's own samples of /metrics.

import { api } from "../api.js";
import { add, count, h, many, size } from "../dom.js";
import { badge, empty, heading, into, meta, table, waiting } from "../parts.js";
import { between, figures, histograms, key, quantile, spread, timeline } from "../metrics.js";

const EVERY = 5_000;
const KEPT = 120;
const LANES = ["memory", "conversation", "context", "deep"];
const PARTS = { threads: "Conversations", truth: "Database", index: "Index" };
const NAMES = { truth: "Database", threads: "Conversations", index: "Index", embedder: "Embedder", disk: "Disk", write: "Write path" };

// They outlive the view, so that coming back shows what was seen before.
const samples = [];

export const view = {
  title: "Status",
  show(main, route, signal) {
    const parts = h("div", null, waiting());
    const sizes = h("div", null, waiting());
    const people = h("div", null, waiting());
    const plots = h("div", null, waiting());
    const paused = h("button", { type: "button", class: "quiet", "aria-pressed": "false" }, "Pause");
    add(main, heading("Status", h("a", { class: "button quiet", href: "#/devices" }, "Devices"), paused), h("section", { class: "results", "aria-label": "Parts" }, h("h2", null, "Parts"), parts),
      h("section", { class: "results", "aria-label": "Sizes" }, h("h2", null, "What there is"), sizes),
      h("section", { class: "results", "aria-label": "Access" }, h("h2", null, "Who can read it"), people),
      h("section", { class: "results", "aria-label": "Latency" }, h("h2", null, "How fast it answers"),
        h("p", { class: "faint small" }, `Measured by the server; this page asks it every ${EVERY / 1000} seconds while it is open.`), plots));
    let stopped = false;
    paused.onclick = () => {
      stopped = !stopped;
      paused.textContent = stopped ? "Go on" : "Pause";
      paused.setAttribute("aria-pressed", String(stopped));
    };
    const look = () => Promise.all([
      into(parts, signal, async () => states(await api.health(signal)), look),
      into(sizes, signal, async () => kept(await api.stats(signal)), look),
      into(plots, signal, async () => {
        take(await api.metrics(signal));
        return latencies();
      }, look),
    ]);
    look();
    const names = () => into(people, signal, async () => readers(...await Promise.all([api.access(signal), api.session(signal)])), names);
    names();
    const timer = setInterval(() => { if (!stopped && document.visibilityState === "visible") look(); }, EVERY);
    signal.addEventListener("abort", () => clearInterval(timer), { once: true });
    return null;
  },
};

function states(health) {
  return [h("p", { class: `note ${health.ok ? "good" : "bad"}` }, h("span", null, h("strong", null, health.ok ? "All is well. " : "Something is wrong. "),
    health.pending ? `The meaning of ${many(health.pending, "text")} is still being worked out; their words are found now.` : "Everything is found by its words and by its meaning.",
    health.jobs ? ` ${many(health.jobs, "job")} of ended sessions wait.` : "")),
  h("div", { class: "card" }, h("div", { class: "parts" }, health.checks.map((check) => h("div", { class: "part-state" },
    h("span", null, badge(check.ok ? "well" : "failing", check.ok ? "good" : "bad")), h("b", null, NAMES[check.name] ?? check.name), h("span", null, check.detail)))))];
}

function kept(stats) {
  const rows = [["Conversations", count(stats.conversations)], ["Messages", count(stats.turns)], ["Memories", count(stats.memories)], ["Documents", count(stats.documents)],
    ["Notes", count(stats.notes)], ["Project files", count(stats.files)], ["Open questions", count(stats.gaps)], ["Meaning to work out", count(stats.pending + stats.sections_pending)]];
  const bytes = Object.entries(stats.bytes);
  return h("div", { class: "card" },
    h("dl", { class: "figures" }, rows.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", { class: "number" }, value))),
      bytes.map(([name, value]) => h("div", null, h("dt", null, `${PARTS[name] ?? name} on disk`), h("dd", { class: "number" }, size(value))))),
    meta(["Meaning by ", h("code", { class: "id" }, stats.embedder)], stats.home ? ["Folder ", h("code", { class: "id" }, stats.home)] : null, ["Memory ", h("code", { class: "id" }, stats.namespace)]));
}

function readers(access, session) {
  return h("div", { class: "card" }, h("p", { dir: "auto" }, access.summary),
    session.person ? h("p", { class: "faint", dir: "auto" }, `You are signed in as ${session.person}.`) : null,
    access.readers.length ? table("Who can read it", ["Name", "May"], access.readers.map((reader) => h("tr", null,
      h("th", { scope: "row", dir: "auto" }, reader.name), h("td", null, reader.writes ? "read and change" : "read")))) : null);
}

function take(text) {
  const now = { at: Date.now(), lanes: histograms(text, "anaphora_request_seconds"), plain: figures(text) };
  const last = samples.at(-1);
  // A server that began anew counts from nothing.
  if (last && [...now.lanes].some(([name, one]) => one.count < (last.lanes.get(name)?.count ?? 0))) samples.length = 0;
  samples.push(now);
  if (samples.length > KEPT) samples.shift();
}

function latencies() {
  const now = samples.at(-1);
  const shown = [...now.lanes].filter(([, one]) => LANES.includes(one.lane) && one.count > 0).sort((a, b) => b[1].count - a[1].count);
  if (!shown.length) return empty("Nothing was asked since the server began.", "Search for something, and come back.");
  return [h("div", { class: "plots" }, shown.slice(0, 9).map(([name, one]) => plot(name, one))), all(shown)];
}

function plot(name, one) {
  const points = pointsOf(name);
  const recent = points.some((point) => point.p50 !== null);
  const last = points.findLast((point) => point.p50 !== null);
  const window_ = Math.max(60, (samples.length * EVERY) / 1000);
  const label = one.route.replace(/^\/v1\//, "");
  return h("article", { class: "card plot" }, h("h3", null, label),
    recent ? timeline(points, window_, label) : spread(one, label),
    recent ? key(last.p50, last.p99, "at the last sample") : null,
    key(quantile(one, 0.5), quantile(one, 0.99), `${many(one.count, "call")} since the server began`));
}

/** p50 and p99 of what came between each two samples, and how many seconds ago. */
function pointsOf(name) {
  const now = samples.at(-1).at;
  return samples.slice(1).map((sample, at) => {
    const one = sample.lanes.get(name);
    const part = one ? between(samples[at].lanes.get(name), one) : { count: 0, buckets: [] };
    return { ago: (now - sample.at) / 1000, p50: quantile(part, 0.5), p99: quantile(part, 0.99) };
  });
}

function all(shown) {
  const milli = (value) => (value === null ? "–" : `${(value * 1000).toFixed(1)} ms`);
  return h("details", null, h("summary", null, "Every route since the server began"),
    table("Latency by route", ["Route", "Lane", { name: "Calls", number: true }, { name: "p50", number: true }, { name: "p90", number: true }, { name: "p99", number: true }],
      shown.map(([, one]) => h("tr", null, h("th", { scope: "row" }, one.route), h("td", null, one.lane), h("td", { class: "number" }, count(one.count)),
        [0.5, 0.9, 0.99].map((q) => h("td", { class: "number" }, milli(quantile(one, q))))))));
}
