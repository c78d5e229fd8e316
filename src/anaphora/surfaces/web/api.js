// What the page asks of the server that it came from, and of nobody else: every route in one place.

/** A refusal of the server (problem+json), or no answer at all (status 0). */
export class Problem extends Error {
  constructor({ status = 0, title = "That did not work", detail = "", errors = [], next = "" }) {
    super(detail || title);
    this.status = status;
    this.title = title;
    this.detail = detail;
    this.next = next;
    this.fields = errors.filter((one) => one?.at && !detail.includes(one.reason)).map((one) => `${one.at}: ${one.reason}`);
  }
}

const KEPT = { token: "anaphora.token", namespace: "anaphora.namespace" };

function kept(name) {
  try {
    return sessionStorage.getItem(KEPT[name]) ?? "";
  } catch {
    return "";
  }
}

function keep(name, value) {
  try {
    if (value) sessionStorage.setItem(KEPT[name], value);
    else sessionStorage.removeItem(KEPT[name]);
  } catch {
    // A browser that keeps nothing forgets it with the page.
  }
}

/** The token in the link that `anaphora serve` gave, once: it does not stay in the address. */
function given() {
  const [, token = ""] = /^#token=(\w+)$/.exec(location.hash) ?? [];
  if (token) {
    keep("token", token);
    history.replaceState(null, "", location.pathname + location.search);
  }
  return token;
}

class Api {
  #token = given() || kept("token");
  #namespace = kept("namespace") || "default";

  get token() { return this.#token; }
  set token(value) { this.#token = value; keep("token", value); }
  get namespace() { return this.#namespace; }
  set namespace(value) { this.#namespace = value || "default"; keep("namespace", value); }

  async #fetch(path, { method = "GET", query = {}, body, file, signal, accept = "application/json", own = true } = {}) {
    const address = new URL(path, document.baseURI);
    for (const [name, value] of Object.entries(query)) {
      if (value !== null && value !== undefined && value !== "") address.searchParams.set(name, value);
    }
    const headers = { Accept: accept };
    // A header holds bytes: those of UTF-8.
    if (own) headers["Anaphora-Namespace"] = bytes(this.#namespace);
    if (body !== undefined) headers["Content-Type"] = "application/json";
    if (file !== undefined) headers["Content-Type"] = "application/octet-stream";
    if (this.#token) headers.Authorization = `Bearer ${this.#token}`;
    let response;
    try {
      response = await fetch(address, {
        method, headers, signal, body: body === undefined ? file : JSON.stringify(body),
        cache: "no-store", credentials: "same-origin", redirect: "error",
      });
    } catch (error) {
      if (error?.name === "AbortError") throw error;
      throw new Problem({ title: "The server does not answer", detail: "Anaphora may have been stopped on this computer." });
    }
    if (!response.ok && !(response.status === 503 && path === "health")) throw await refused(response);
    return response;
  }

  async #json(path, options) {
    const response = await this.#fetch(path, options);
    return response.status === 204 ? null : response.json();
  }

  // The server itself.
  session(signal) { return this.#json("v1/session", { signal }); }
  health(signal) { return this.#json("health", { signal, own: false }); }
  ready(timeout, signal) { return this.#json("v1/ready", { query: { timeout }, signal }); }
  stats(signal) { return this.#json("v1/stats", { signal }); }
  async metrics(signal) {
    return (await this.#fetch("metrics", { signal, accept: "text/plain", own: false })).text();
  }

  // Devices.
  access(signal) { return this.#json("v1/access", { signal }); }
  sync(signal) { return this.#json("v1/sync", { signal }); }
  exchange(signal) { return this.#json("v1/sync", { method: "POST", signal }); }
  removeDevice(device) { return this.#json("v1/sync/remove", { method: "POST", body: { device } }); }

  search(body, signal) { return this.#json("v1/search", { method: "POST", body, signal }); }
  documents(query, signal) { return this.#json("v1/documents", { query, signal }); }
  document(id, signal) { return this.#json(`v1/documents/${part(id)}`, { signal }); }
  documentSections(id, signal) { return this.#json(`v1/documents/${part(id)}/sections`, { signal }); }
  importFile(file, name) { return this.#json("v1/import", { method: "POST", query: { name }, file }); }

  // Conversations.
  threads(query, signal) { return this.#json("v1/conversations", { query, signal }); }
  thread(id, signal) { return this.#json(`v1/conversations/${part(id)}`, { signal }); }
  toolCalls(id, signal) { return this.#json(`v1/conversations/${part(id)}/tool-calls`, { signal }); }
  deleteThread(id) { return this.#json(`v1/conversations/${part(id)}`, { method: "DELETE" }); }
  redact(id, index) {
    return this.#json(`v1/conversations/${part(id)}/turns/${index}/redact`, { method: "POST" });
  }
  recallTurns(body, signal) {
    return this.#json("v1/conversations/recall", { method: "POST", body, signal });
  }

  // Memories.
  recall(body, signal) { return this.#json("v1/recall", { method: "POST", body, signal }); }
  memories(query, signal) { return this.#json("v1/memories", { query, signal }); }
  memory(id, signal) { return this.#json(`v1/memories/${part(id)}`, { signal }); }
  history(path, signal) { return this.#json("v1/memories/history", { query: { path }, signal }); }
  remember(body) { return this.#json("v1/memories", { method: "POST", body }); }
  update(id, body) { return this.#json(`v1/memories/${part(id)}`, { method: "PATCH", body }); }
  core(signal) { return this.#json("v1/core", { signal }); }
  pin(id, position = null) { return this.#json("v1/core/pin", { method: "POST", body: { id, position } }); }
  unpin(id) { return this.#json("v1/core/unpin", { method: "POST", body: { id } }); }
  contradictions(settled, signal, limit = 200) { return this.#json("v1/contradictions", { query: { settled, limit }, signal }); }
  settle(id, other, verdict) { return this.#json("v1/contradictions/settle", { method: "POST", body: { id, other_id: other, verdict } }); }
  reopen(id, other) { return this.#json("v1/contradictions/reopen", { method: "POST", body: { id, other_id: other } }); }
  forget(id, how = {}) { return this.#json("v1/forget", { method: "POST", body: { id, ...how } }); }
  undoForget(id) { return this.#json("v1/forget/undo", { method: "POST", body: { id } }); }

  // Notes.
  notes(query, signal) { return this.#json("v1/observations", { query, signal }); }
  diary(query, signal) { return this.#json("v1/diary", { query, signal }); }
  observe(body) { return this.#json("v1/observations", { method: "POST", body }); }
  writeDiary(body) { return this.#json("v1/diary", { method: "POST", body }); }

  // Projects.
  projects(signal) { return this.#json("v1/projects", { signal }); }
  projectMap(project, within, signal) {
    return this.#json(`v1/projects/${part(project)}/map`, { query: { within }, signal });
  }
  recallContext(body, signal) { return this.#json("v1/context/recall", { method: "POST", body, signal }); }

  // Deep recall: `on(event, data)` is told of every event as it comes.
  async deep(body, on, signal) {
    const response = await this.#fetch("v1/deep", { method: "POST", body, signal, accept: "text/event-stream" });
    await events(response, (event, data) => {
      if (event === "problem") throw new Problem(data);
      on(event, data);
    });
  }
  traces(signal) { return this.#json("v1/traces", { signal }); }
  trace(id, signal) { return this.#json(`v1/traces/${part(id)}`, { signal }); }
  gaps(status, signal) { return this.#json("v1/gaps", { query: { status }, signal }); }
  dream(model, signal) { return this.#json("v1/dream", { method: "POST", body: { model }, signal }); }
}

export const api = new Api();

function bytes(text) {
  return String.fromCharCode(...new TextEncoder().encode(text));
}

function part(text) {
  return encodeURIComponent(text);
}

async function refused(response) {
  let told = {};
  try {
    told = await response.json();
  } catch {
    told = { detail: response.statusText };
  }
  const problem = new Problem({ ...told, status: response.status });
  if (response.status === 401) {
    dispatchEvent(new CustomEvent("anaphora:unauthorised", { detail: problem }));
  }
  return problem;
}

/** Read server-sent events out of a response; `on(event, data)` gets each one's JSON. */
export async function events(response, on) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    rest += value ?? "";
    const blocks = rest.split(/\r?\n\r?\n/);
    rest = done ? "" : blocks.pop();
    for (const block of blocks) {
      const found = eventOf(block);
      if (found) on(found.event, found.data);
    }
    if (done) return;
  }
}

function eventOf(block) {
  let event = "message";
  const data = [];
  for (const line of block.split(/\r?\n/)) {
    const [, name, value] = /^(\w+):? ?(.*)$/s.exec(line) ?? [];
    if (name === "event") event = value;
    if (name === "data") data.push(value);
  }
  return data.length ? { event, data: JSON.parse(data.join("\n")) } : null;
}
