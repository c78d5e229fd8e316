// The timeline: what was said, remembered, noted and done, day by day, the last day first.

import { add, fill, h, when } from "../dom.js";
import { heading, into, waiting } from "../parts.js";
import { firstRun } from "../intake.js";
import { eventRow, recentEvents } from "../recent.js";

const LOOKED_AT = 200;
const DAYS = 14;

export const view = {
  title: "Timeline",
  show(main, _, signal) {
    const place = h("div", null, waiting());
    add(main, heading("Timeline"), place);
    const fetched = () => into(place, signal, () => days(signal), fetched);
    fetched();
    return null;
  },
};

async function days(signal) {
  const { events, more: cut } = await recentEvents(LOOKED_AT, signal);
  if (!events.length) return firstRun();
  const byDay = new Map();
  for (const entry of events) {
    const day = new Date(entry.at.getFullYear(), entry.at.getMonth(), entry.at.getDate()).getTime();
    byDay.set(day, [...(byDay.get(day) ?? []), entry]);
  }
  const groups = [...byDay];
  const shown = h("div", { class: "days" });
  let next = 0;
  const foot = h("div", null);
  const more = () => {
    add(shown, groups.slice(next, next + DAYS).map(([day, entries]) => ofDay(day, entries)));
    next += DAYS;
    fill(foot, next < groups.length ? h("button", { type: "button", onclick: more }, "Show earlier days") : null);
  };
  more();
  return [cut ? h("p", { class: "summary" }, `Of the last ${LOOKED_AT} conversations and memories.`) : null, shown, foot];
}

function ofDay(day, entries) {
  return h("section", { class: "day" }, h("h2", null, when(new Date(day).toISOString(), { day: true })),
    h("ol", { class: "plain tight rows-list" }, entries.map((entry) => eventRow(entry))));
}
