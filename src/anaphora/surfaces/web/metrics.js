// What Prometheus text says about latency, and plots of it.

import { h, duration, s } from "./dom.js";

/** Histograms by label set: Map of "route lane" → { route, lane, count, buckets: [[le, count]] }. */
export function histograms(text, name) {
  const found = new Map();
  for (const line of text.split("\n")) {
    const [, metric, labels, value] = /^([A-Za-z_:][\w:]*)\{(.*)\}\s+(\S+)/.exec(line) ?? [];
    if (metric !== `${name}_bucket`) continue;
    const { le, ...rest } = labelsOf(labels);
    const key = JSON.stringify(rest);
    if (!found.has(key)) found.set(key, { ...rest, buckets: [] });
    found.get(key).buckets.push([le === "+Inf" ? Infinity : Number(le), Number(value)]);
  }
  for (const one of found.values()) {
    one.buckets.sort((a, b) => a[0] - b[0]);
    one.count = one.buckets.at(-1)?.[1] ?? 0;
  }
  return found;
}

function labelsOf(text) {
  const labels = {};
  for (const [, name, value] of text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
    labels[name] = value.replace(/\\(.)/g, (_, sign) => (sign === "n" ? "\n" : sign));
  }
  return labels;
}

/** Plain figures without labels, by name. */
export function figures(text) {
  const found = {};
  for (const line of text.split("\n")) {
    const [, name, value] = /^([A-Za-z_:][\w:]*)\s+(\S+)/.exec(line) ?? [];
    if (name) found[name] = Number(value);
  }
  return found;
}

/** What came between two samples of a histogram; the later one itself without an earlier. */
export function between(earlier, later) {
  if (!earlier) return later;
  const before = new Map(earlier.buckets);
  const buckets = later.buckets.map(([le, count]) => [le, count - (before.get(le) ?? 0)]);
  return { ...later, buckets, count: later.count - earlier.count };
}

/** Seconds below which the share `q` lies, evenly spread within a bucket; null without any. */
export function quantile(histogram, q) {
  if (!(histogram.count > 0)) return null;
  const rank = q * histogram.count;
  let [below, floor] = [0, 0];
  for (const [le, count] of histogram.buckets) {
    if (count >= rank) {
      if (!Number.isFinite(le)) return floor;
      return floor + (le - floor) * ((rank - below) / Math.max(1e-12, count - below));
    }
    [below, floor] = [count, le];
  }
  return floor;
}

const BOX = { width: 340, height: 130, left: 46, right: 8, top: 8, bottom: 20 };

/** p50 and p99 over the samples of the window, on a logarithmic axis. */
export function timeline(points, seconds, name) {
  const values = points.flatMap((point) => [point.p50, point.p99]).filter((value) => value > 0);
  if (!values.length) return null;
  const [low, high] = decades(values);
  const x = (at) => BOX.left + (1 - at / seconds) * (BOX.width - BOX.left - BOX.right);
  const y = (value) => scaled(Math.max(value, low), low, high);
  const drawn = (part) => {
    let path = "";
    let pen = "M";
    for (const point of points) {
      if (point[part] === null) continue;
      path += `${pen}${x(point.ago).toFixed(1)} ${y(point[part]).toFixed(1)}`;
      pen = "L";
    }
    return path;
  };
  const last = points.findLast((point) => point.p50 !== null);
  const words = `Latency of ${name}: half of the calls below ${duration(last.p50)}, 99 of 100 below ${duration(last.p99)} at the last sample.`;
  return s("svg", { viewBox: `0 0 ${BOX.width} ${BOX.height}`, role: "img", "aria-label": words },
    axis(low, high), s("text", { x: BOX.left, y: BOX.height - 5 }, `${Math.round(seconds / 60)} min ago`),
    s("text", { x: BOX.width - BOX.right, y: BOX.height - 5, "text-anchor": "end" }, "now"),
    s("path", { class: "p99", d: drawn("p99") }), s("path", { class: "p50", d: drawn("p50") }),
    points.filter((point) => point.p50 !== null).flatMap((point) => [
      s("circle", { class: "dot99", cx: x(point.ago), cy: y(point.p99), r: 2 }),
      s("circle", { class: "dot50", cx: x(point.ago), cy: y(point.p50), r: 2 })]));
}

function decades(values) {
  const low = 10 ** Math.floor(Math.log10(Math.min(...values)));
  const high = 10 ** Math.ceil(Math.log10(Math.max(...values)));
  return low === high ? [low / 10, high] : [low, high];
}

function scaled(value, low, high) {
  const share = Math.log(value / low) / Math.log(high / low);
  return BOX.height - BOX.bottom - share * (BOX.height - BOX.top - BOX.bottom);
}

function axis(low, high) {
  const marks = [];
  for (let value = low; value <= high * 1.001; value *= 10) {
    const y = scaled(value, low, high);
    marks.push(s("line", { class: "grid", x1: BOX.left, x2: BOX.width - BOX.right, y1: y, y2: y }),
      s("text", { x: BOX.left - 6, y: y + 3.5, "text-anchor": "end" }, value < 1 ? `${Number((value * 1000).toPrecision(3))} ms` : `${Number(value.toPrecision(3))} s`));
  }
  return marks;
}

/** How calls spread over the buckets of time since the server began. */
export function spread(histogram, name) {
  const bins = histogram.buckets.map(([le, count], at) => ({ le, count: count - (histogram.buckets[at - 1]?.[1] ?? 0) }));
  const used = bins.map((bin, at) => (bin.count ? at : -1)).filter((at) => at >= 0);
  if (!used.length) return null;
  const shown = bins.slice(Math.max(0, used[0] - 1), Math.min(bins.length, used.at(-1) + 2));
  const most = Math.max(...shown.map((bin) => bin.count));
  const step = (BOX.width - BOX.left - BOX.right) / shown.length;
  const floor = BOX.height - BOX.bottom;
  const columns = shown.map((bin, at) => {
    const height = (bin.count / most) * (floor - BOX.top - 12);
    const middle = BOX.left + at * step + step / 2;
    return [s("rect", { class: "column", x: BOX.left + at * step + 2, width: step - 4, y: floor - height, height, rx: 2 }),
      bin.count ? s("text", { x: middle, y: floor - height - 4, "text-anchor": "middle" }, bin.count) : null,
      s("text", { x: middle, y: BOX.height - 5, "text-anchor": "middle" }, limit(bin.le))];
  });
  const told = shown.filter((bin) => bin.count).map((bin) => `${bin.count} up to ${limit(bin.le)}`).join(", ");
  return s("svg", { viewBox: `0 0 ${BOX.width} ${BOX.height}`, role: "img", "aria-label": `Calls of ${name} by time: ${told}` },
    s("line", { class: "grid", x1: BOX.left, x2: BOX.width - BOX.right, y1: floor, y2: floor }), columns,
    s("text", { x: BOX.left - 6, y: floor - 4, "text-anchor": "end" }, "calls"));
}

function limit(seconds) {
  if (!Number.isFinite(seconds)) return "∞";
  return seconds < 1 ? `${Number((seconds * 1000).toPrecision(3))}ms` : `${seconds}s`;
}

/** p50 and p99 in figures, with the lines that stand for them, and what they are of. */
export function key(p50, p99, calls) {
  return h("p", { class: "key" },
    h("span", null, h("span", { class: "swatch" }), "p50 ", h("b", null, duration(p50))),
    h("span", null, h("span", { class: "swatch late" }), "p99 ", h("b", null, duration(p99))),
    h("span", { class: "faint" }, calls));
}
