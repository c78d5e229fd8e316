// Ask: a question over everything, the steps to its answer as they happen, and those of earlier ones.

import { api } from "../api.js";
import { add, announce, count, duration, fill, firstWords, h, many, said, saidLong, score, to, when } from "../dom.js";
import { badge, choice, degraded, empty, field, heading, into, meta, row, rowsList, tick, trouble, waiting } from "../parts.js";
import { conversationTitle, fetchTitles } from "../titles.js";

const SCOPES = [["recent_sessions", "The newest conversations"], ["all_sessions", "All conversations"], ["current_session", "One conversation"]];
const KINDS = { shortcut: "Shortcut", cache: "Stored answer", code: "Code", submit: "Answer", extraction: "Answer from what was seen", limit: "Limit" };

export const view = {
  title: "Ask",
  show(main, route, signal) {
    if (route.rest[0]) {
      saved(main, route.rest[0], signal);
      return null;
    }
    const form = formOf();
    const stop = h("button", { type: "button", hidden: true }, "Stop");
    form.querySelector(".controls").append(stop);
    const place = h("div", { class: "results" });
    const kept = h("section", { "aria-label": "Earlier answers" }, h("h2", null, "Earlier answers"), h("div", null, waiting()));
    add(main, heading("Ask over the whole history", h("a", { class: "button quiet", href: "#/questions" }, "Open questions")),
      h("p", { class: "lead" }, "For “how often”, “when first”, “who”: a model writes its own search over everything, in a sandbox, and names its sources. Without a model, what can be counted is counted, and the best evidence is shown."),
      form, place, kept);
    const listed = () => into(kept.lastElementChild, signal, async () => traces(await api.traces(signal)), listed);
    listed();
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      run(form, place, stop, signal).then(listed);
    });
    return null;
  },
};


function formOf() {
  const thread = field("Its id (shown on its page)", h("input", { name: "thread", autocomplete: "off", spellcheck: "false" }));
  thread.hidden = true;
  const scope = choice({ name: "scope" }, SCOPES, "recent_sessions");
  scope.addEventListener("change", () => { thread.hidden = scope.value !== "current_session"; });
  return h("form", { class: "search" },
    field("Question", h("textarea", { name: "question", rows: 2, required: true, dir: "auto", placeholder: "How often did we change the pricing, and why?" })),
    h("div", { class: "controls" }, field("Look in", scope), thread,
      tick("Memories too", { name: "memory", checked: true }),
      h("button", { type: "submit", class: "primary" }, "Ask")));
}

async function run(form, place, stop, signal) {
  const data = Object.fromEntries(new FormData(form));
  const submit = form.querySelector("[type=submit]");
  const control = new AbortController();
  const leave = () => control.abort();
  signal.addEventListener("abort", leave, { once: true });
  stop.onclick = () => { control.abort(); announce("Stopped"); };
  submit.disabled = true;
  stop.hidden = false;
  const steps = h("ol", { class: "steps", "aria-live": "polite", "aria-label": "Steps" });
  const foot = h("div", null, waiting("Thinking …"));
  fill(place, steps, foot);
  try {
    await api.deep({
      question: data.question, scope: data.scope, include_memory: Boolean(data.memory),
      conversation_id: data.scope === "current_session" ? data.thread : null,
    }, (event, value) => {
      if (event === "step") steps.append(step(value));
      if (event === "answer") {
        if (!steps.childElementCount) steps.append(...value.steps.map(step));
        fill(foot, answer(value));
        titled(value, signal).then(() => fill(foot, answer(value)), () => null);
        announce(value.answer ? `Answer: ${value.answer.slice(0, 200)}` : value.note || "No answer was found");
      }
    }, control.signal);
  } catch (error) {
    fill(foot, error?.name === "AbortError" ? h("p", { class: "note warn" }, "Stopped. The steps above are what was done until then.") : trouble(error));
  } finally {
    signal.removeEventListener("abort", leave);
    submit.disabled = false;
    stop.hidden = true;
  }
}

function step(one) {
  return h("li", { class: "step card" },
    h("header", null, h("b", null, `${one.number ? `${one.number}. ` : ""}${KINDS[one.kind] ?? one.kind}`), one.seconds ? h("span", { class: "faint number" }, duration(one.seconds)) : null, h("span", { class: "faint number beside" }, spent(one.cost, " so far"))),
    one.thought ? said(one.thought) : null,
    one.code ? code("Code", one.code, "code") : null,
    one.output ? code("Output", one.output, "output") : null,
    one.error ? code("Error", one.error, "output failed") : null,
    one.sub_calls.length ? h("details", null, h("summary", null, `${many(one.sub_calls.length, "question")} to the model that reads`),
      h("ol", { class: "plain" }, one.sub_calls.map((call) => h("li", { class: "sub" },
        code("Asked", call.prompt, "output"), call.error ? code("Error", call.error, "output failed") : code("Answered", call.answer, "output"),
        meta(many(call.tokens, "token"), call.cached ? badge("asked before") : null))))) : null);
}

function code(name, text, kind) {
  return h("figure", { class: "listing" }, h("figcaption", { class: "faint small" }, name),
    h("pre", { class: kind, tabindex: "0", dir: "auto" }, text));
}

/** What a model has cost; nothing where none was asked. */
function spent(cost, suffix = "") {
  const tokens = cost.input_tokens + cost.output_tokens;
  if (!tokens) return null;
  const dollars = cost.estimated_dollars === null ? "price unknown" : cost.estimated_dollars === 0 ? "no cost" : `$${cost.estimated_dollars.toFixed(4)}`;
  return `${count(tokens)} tokens${suffix}, ${dollars}`;
}

/** How an answer came about, in one line. */
function effort(cost) {
  const parts = [cost.iterations ? many(cost.iterations, "step") : null, cost.sub_calls ? many(cost.sub_calls, "question to the model that reads", "questions to the model that reads") : null, cost.seconds ? duration(cost.seconds) : null, spent(cost) ?? "no model was asked"];
  return parts.filter(Boolean).join(", ");
}

function answer(found) {
  const marks = [
    found.complete || !found.limit ? null : badge(`incomplete: ${found.limit}`, "warn", "A limit ended it; this is the best until then"),
    found.answer || found.complete || found.limit ? null : badge("evidence alone", "warn", "No model has answered"),
    found.answer ? badge(found.supported ? "supported" : "not supported", found.supported ? "good" : "bad", "Whether it stands on sources that exist") : null,
    found.shortcut ? badge("shortcut", "plain", "The search was sure: no model was asked") : null,
    found.cached ? badge("stored answer", "plain", "Answered before, and nothing it stands on has changed") : null,
    found.gap_id ? h("a", { href: "#/questions" }, badge("noted as an open question", "warn")) : null,
  ];
  return [h("section", { class: "answer card", "aria-label": "Answer" },
    h("h2", null, "Answer"), meta(marks, h("span", { class: "faint number" }, effort(found.cost))),
    found.answer ? saidLong(found.answer, 6000) : h("p", { class: "faint" }, found.shortcut || found.sources.length ? "No answer was written; the evidence is below." : "Nothing was found."),
    found.note ? h("p", { class: "note" }, found.note) : null, degraded(found.degraded)),
  found.sources.length ? h("section", { "aria-label": "Sources" }, h("h2", null, many(found.sources.length, "source")),
    h("ol", { class: "plain" }, found.sources.map((one) => h("li", { class: "card" }, source(one))))) : null];
}

/** Fetch the titles of the conversations that an answer stands on. */
function titled(found, signal) {
  return fetchTitles(found.sources.map((source) => source.conversation_id), signal);
}

function source(one) {
  const turn = one.kind === "turn";
  const href = turn ? to(["conversations", one.conversation_id], { turn: one.index }) : to([one.kind === "document" ? "documents" : "memories", one.id.replace(/^memory:/, "")]);
  return [meta(badge(turn ? "conversation" : one.kind.replaceAll("_", " "), "kind"), h("a", { class: "where", dir: "auto", href }, turn ? conversationTitle(one.conversation_id) : firstWords(one.text || one.id).name),
    one.role ? h("span", null, one.role) : null, when(one.ts, { day: true }),
    one.score !== null ? h("span", { class: "score", title: "Score of the search" }, score(one.score)) : null), one.text ? saidLong(one.text, 600) : null];
}

function traces(list) {
  if (!list.length) return empty("Nothing was asked yet.", "Ask a first question above.");
  return rowsList(list.map((trace) => row({ href: to(["ask", trace.id]), title: trace.question, facts: [when(trace.made_at, { day: true })] })));
}

function saved(main, id, signal) {
  const place = h("div", null, waiting());
  add(main, h("p", { class: "back" }, h("a", { href: "#/ask" }, "Ask")), place);
  const fetched = () => into(place, signal, async () => {
    const found = await api.trace(id, signal);
    await titled(found, signal);
    return [heading(found.question), answer(found), found.steps.length ? h("details", null, h("summary", null, `How it came about: ${many(found.steps.length, "step")}`),
      h("ol", { class: "steps", "aria-label": "Steps" }, found.steps.map(step))) : null];
  }, fetched);
  fetched();
}
