// A program that uses a client which was generated from /openapi.json. Prints what it found as JSON.

import createClient from "openapi-fetch";
import type { components, operations, paths } from "./schema.js";

declare const process: { argv: string[] };

type Problem = components["schemas"]["Problem"];
// An operation has the name of the facade's method.
type Question = operations["recall"]["requestBody"]["content"]["application/json"];

const [url, token] = process.argv.slice(2) as [string, string];
const client = createClient<paths>({
  baseUrl: url,
  headers: { Authorization: `Bearer ${token}`, "Anaphora-Namespace": "birds" },
});

/** What a problem says, told apart by its type: each form has fields of its own. */
function told(problem: Problem): string {
  switch (problem.type) {
    case "urn:anaphora:problem:not_found":
      return `no ${problem.data?.kind} ${problem.data?.id}`;
    case "urn:anaphora:problem:invalid_input":
    case "urn:anaphora:problem:filter":
      return (problem.errors ?? []).map((one) => one.at).join();
    default:
      return problem.type;
  }
}

function some<T>(answer: { data?: T; error?: Problem }): T {
  if (answer.data === undefined) {
    throw new Error(answer.error ? told(answer.error) : "no answer");
  }
  return answer.data;
}

function refused(answer: { error?: Problem }): string {
  return answer.error ? told(answer.error) : "nothing was refused";
}

const kept = some(
  await client.POST("/v1/memories", {
    body: { text: "Herons wade at dawn.", path: "heron.habit", tags: ["bird"] },
  }),
);
const again = await client.POST("/v1/memories", {
  body: { text: "Herons wade at dawn.", path: "heron.habit" },
});
const question: Question = {
  question: "when do herons wade?",
  top_k: 1,
  filters: { tags: { contains: "bird" } },
};
const found = some(await client.POST("/v1/recall", { body: question }));
const one = some(
  await client.GET("/v1/memories/{memory_id}", { params: { path: { memory_id: kept.id } } }),
);
const turns = some(
  await client.POST("/v1/conversations/{conversation_id}/turns", {
    params: { path: { conversation_id: "chat" } },
    body: { turns: [{ role: "user", text: "Who feeds them?", ts: "2026-04-30T12:00:00Z" }] },
  }),
);
const gone = some(await client.POST("/v1/forget", { body: { id: kept.id } }));
const missing = await client.GET("/v1/memories/{memory_id}", {
  params: { path: { memory_id: kept.id } },
});
const wrong = await client.POST("/v1/recall", {
  body: { question: "x", filters: { tags: { has: "bird" } } },
});
const stranger = await client.GET("/v1/memories", {
  headers: { Authorization: "Bearer anaphora_0" },
});

// What the compiler must refuse.
// @ts-expect-error a memory needs a text
void (() => client.POST("/v1/memories", { body: { path: "x" } }));
// @ts-expect-error there is no such route
void (() => client.GET("/v1/nothing"));
// @ts-expect-error a score is a number
const text: string | undefined = found.hits[0]?.score;
void text;

console.log(
  JSON.stringify({
    actions: [kept.action, some(again).action],
    statuses: [again.response.status, missing.response.status, stranger.response.status],
    texts: found.hits.map((hit) => hit.text),
    created: Number.isFinite(Date.parse(one.created_at)),
    tags: one.tags,
    indexes: turns.indexes,
    forgotten: gone.count,
    problems: [refused(missing), refused(wrong), refused(stranger)],
  }),
);
