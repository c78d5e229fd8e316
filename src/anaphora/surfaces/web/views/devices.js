// Devices: with whom this namespace is shared, what waits, and removing one.

import { api } from "../api.js";
import { add, announce, count, fill, h, many, when } from "../dom.js";
import { ask, badge, empty, heading, into, meta, table, trouble, waiting } from "../parts.js";

export const view = {
  title: "Devices",
  show(main, route, signal) {
    const place = h("div", null, waiting());
    const report = h("div", { "aria-live": "polite" });
    const start = h("button", { type: "button", class: "primary", hidden: true }, "Exchange now");
    add(main, h("p", { class: "back" }, h("a", { href: "#/status" }, "Status")), heading("Devices", start),
      h("p", { class: "lead" }, "The same memory on several devices. What is exchanged is encrypted: the place in between cannot read it."), report, place);
    const fetched = () => into(place, signal, async () => {
      const found = await api.sync(signal);
      start.hidden = !found.status.project;
      return shown(found, remove);
    }, fetched);
    const remove = (device) => ask({
      title: `Remove ${device.name || device.device}?`,
      body: h("p", null, "The other devices go on under a new key, which it does not get. What it has, it keeps."),
      confirm: "Remove", danger: true,
      deed: async () => {
        await api.removeDevice(device.device);
        announce("Removed");
        fetched();
      },
    });
    start.addEventListener("click", async () => {
      start.disabled = true;
      fill(report, waiting("Exchanging …"));
      try {
        const done = await api.exchange(signal);
        const told = `Sent ${many(done.sent, "entry", "entries")}, received ${many(done.received, "entry", "entries")}.`;
        fill(report, h("p", { class: "note good" }, told));
        announce(told);
      } catch (error) {
        if (!signal.aborted) fill(report, trouble(error));
      } finally {
        start.disabled = false;
        fetched();
      }
    });
    fetched();
    return null;
  },
};

function backlog(status) {
  const more = status.uncounted ? "what changed since" : "";
  const made = status.waiting ? many(status.waiting, "entry", "entries") : "";
  return made || more ? `${[made, more].filter(Boolean).join(" and ")} to be sent` : "nothing to send";
}

function shown({ status, devices, conflicts }, remove) {
  if (!status.project) {
    return empty("This memory is on this computer alone.",
      "A folder that Syncthing or Dropbox carries, a server, or S3 storage can share it: run anaphora sync init with its address.");
  }
  return [
    status.stopped ? h("div", { class: "note bad", role: "alert" }, h("strong", null, "It has stopped. "), status.stopped) : null,
    conflicts.length ? h("section", { class: "note warn", "aria-label": "Conflicts" },
      h("strong", null, `${many(conflicts.length, "conflict")} of two devices. `), "Nothing is lost: the earlier value is in the history. Edit the memory to decide.",
      h("ul", null, conflicts.map((conflict) => h("li", { dir: "auto" }, conflict.path ? h("b", null, `${conflict.path}: `) : null, conflict.summary)))) : null,
    meta(["Remote ", h("code", { class: "id" }, status.remote)], backlog(status),
      status.last_synced ? ["last exchange ", when(status.last_synced)] : "never exchanged"),
    table("Devices", ["Device", { name: "Entries", number: true }, "Last written", ""], devices.map((one) => h("tr", { class: one.removed ? "faint" : null },
      h("th", { scope: "row" }, one.name || "without a name", " ", h("code", { class: "id" }, one.device)),
      h("td", { class: "number" }, count(one.entries)), h("td", null, one.last_written ? when(one.last_written) : "never"),
      h("td", null, one.removed ? badge("removed") : one.this ? badge("this one", "good")
        : h("button", { type: "button", class: "quiet small", onclick: () => remove(one) }, "Remove"))))),
    h("p", { class: "faint" }, "To add a device run anaphora sync pair on this one, and enter the code on the new one."),
  ];
}
