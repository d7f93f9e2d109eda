// The npm package openai: chat, stream, tools, structured output, Responses, embeddings, models and errors.

import OpenAI, { AuthenticationError, BadRequestError, NotFoundError } from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { VERSION } from "openai/version";
import { z } from "zod";
import assert from "node:assert/strict";

const { CLIENT_BASE_URL: baseURL, CLIENT_TOKEN: apiKey, CLIENT_ENDPOINT: endpoint } = process.env;
const KEY = "clients"; // the key of the model endpoint, as in checks.py
const PIXEL =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
const SIX = "One two three four five six.";
const WEATHER = [[["weather", '{"city": "Bergen"}']]];
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tools = [{ type: "function", function: { name: "weather", parameters } }];
const Person = z.object({ name: z.string(), age: z.number() });
const ADA = { name: "Ada", age: 36 };

const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const model = "cato";
let number = 0;
// An equal conversation would be recognised as the same thread.
const unique = (text) => `${text} (node ${(number += 1)})`;
const user = (text) => ({ role: "user", content: unique(text) });

async function script(answer, calls = [], more = {}) {
  await fetch(`${endpoint}/script/${KEY}`, { method: "POST", body: JSON.stringify({ answer, calls, ...more }) });
}

async function prompt() {
  const rows = await (await fetch(`${endpoint}/asked/${KEY}`)).json();
  return rows.filter((row) => row.path === "/v1/chat/completions").at(-1).body;
}

const checks = {
  async "chat with usage"() {
    await script("Ada has it.");
    const answer = await client.chat.completions.create({ model, messages: [user("Who has the key?")] });
    assert.equal(answer.choices[0].message.content, "Ada has it.");
    assert.equal(answer.usage.completion_tokens, 3);
  },
  async "conversation continues its thread"() {
    await script(["First.", "Second."]);
    const messages = [user("One?")];
    const first = await client.chat.completions.create({ model, messages });
    messages.push(first.choices[0].message, user("Two?"));
    const { data, response } = await client.chat.completions.create({ model, messages }).withResponse();
    assert.equal(data.choices[0].message.content, "Second.");
    assert.equal(response.headers.get("x-cato-thread"), first.cato.thread);
  },
  async stream() {
    await script(SIX, [], { token_delay: 0.1 });
    const stream = client.chat.completions.stream({
      model, messages: [user("Count")], stream_options: { include_usage: true },
    });
    let parts = 0;
    stream.on("content", () => (parts += 1));
    assert.equal((await stream.finalChatCompletion()).choices[0].message.content, SIX);
    assert.equal((await stream.totalUsage()).completion_tokens, 6);
    assert.ok(parts > 1, "it came in one piece");
  },
  async "a closed stream stops the answer"() {
    await script(SIX.repeat(200), [], { token_delay: 0.1 });
    const messages = [user("Count on")];
    const stream = await client.chat.completions.create({ model, messages, stream: true });
    let text = "";
    for await (const chunk of stream) {
      text += chunk.choices[0].delta.content ?? "";
      if (text) break;
    }
    await script("Goodbye.");
    messages.push({ role: "assistant", content: text }, user("Enough"));
    const next = await client.chat.completions.create({ model, messages });
    assert.equal(next.choices[0].message.content, "Goodbye.");
  },
  async "tools run by the package"() {
    for (const stream of [false, true]) {
      await script(["Let me see.", "It rains."], WEATHER);
      const run = (city) => `Rain in ${city.city}`;
      const definition = { name: "weather", parameters, parse: JSON.parse, function: run };
      const runner = client.chat.completions.runTools({
        model, stream, messages: [user("The weather?")], tools: [{ type: "function", function: definition }],
      });
      assert.equal(await runner.finalContent(), "It rains.");
      assert.equal((await prompt()).messages.at(-1).content, "Rain in Bergen");
    }
  },
  async "structured output"() {
    await script(JSON.stringify(ADA));
    const response_format = zodResponseFormat(Person, "person");
    const answer = await client.chat.completions.parse({ model, response_format, messages: [user("Who?")] });
    assert.deepEqual(answer.choices[0].message.parsed, ADA);
    assert.equal((await prompt()).response_format.json_schema.name, "person");
  },
  async image() {
    await script("Red.");
    const content = [{ type: "text", text: unique("Which colour?") }, { type: "image_url", image_url: { url: PIXEL } }];
    const answer = await client.chat.completions.create({ model, messages: [{ role: "user", content }] });
    assert.equal(answer.choices[0].message.content, "Red.");
  },
  async "responses, one after another"() {
    await script(["First.", "Second."]);
    const first = await client.responses.create({ model, input: unique("One?"), instructions: "Be brief." });
    assert.equal(first.output_text, "First.");
    const second = await client.responses.create({ model, input: "Two?", previous_response_id: first.id });
    assert.equal(second.output_text, "Second.");
    assert.equal((await client.responses.retrieve(second.id)).output_text, "Second.");
    assert.equal(second.cato.thread, first.cato.thread);
  },
  async "responses streamed"() {
    await script(SIX, [], { token_delay: 0.1 });
    const stream = client.responses.stream({ model, input: unique("Count") });
    let text = "";
    stream.on("response.output_text.delta", (event) => (text += event.delta));
    assert.equal((await stream.finalResponse()).output_text, SIX);
    assert.equal(text, SIX);
  },
  async "responses with tools"() {
    await script(["", "It rains."], WEATHER);
    const options = { model, tools: [{ type: "function", name: "weather", parameters, strict: true }] };
    const input = [user("The weather?")];
    const first = await client.responses.create({ ...options, input });
    const call = first.output.find((item) => item.type === "function_call");
    input.push(...first.output, { type: "function_call_output", call_id: call.call_id, output: "Rain in Bergen" });
    assert.equal((await client.responses.create({ ...options, input })).output_text, "It rains.");
  },
  async "responses with structured output"() {
    await script(JSON.stringify(ADA));
    const text = { format: zodTextFormat(Person, "person") };
    assert.deepEqual((await client.responses.parse({ model, text, input: unique("Who?") })).output_parsed, ADA);
  },
  async "models and embeddings"() {
    const models = [];
    for await (const row of client.models.list()) models.push(row);
    const embedding = models.find((row) => row.type === "embedding").id;
    const { data } = await client.embeddings.create({ model: embedding, input: ["The key", "The door"] });
    assert.equal(data.length, 2);
    assert.equal(typeof data[0].embedding[0], "number");
  },
  async errors() {
    const ask = (client, more) => client.chat.completions.create({ model, messages: [user("Hello")], ...more });
    await assert.rejects(ask(new OpenAI({ baseURL, apiKey: "wrong", maxRetries: 0 })), AuthenticationError);
    await assert.rejects(ask(client, { model: "none" }), NotFoundError);
    await assert.rejects(ask(client, { n: 2 }), BadRequestError);
  },
};

console.log(`openai ${VERSION} (npm), Node ${process.versions.node}`);
for (const [name, check] of Object.entries(checks)) {
  try {
    await check();
    console.log(`  ${name}: ok`);
  } catch (error) {
    process.exitCode = 1;
    console.log(`  ${name}: differs: ${error.name}: ${error.message.slice(0, 500)}`);
    console.error(error.stack);
  }
}
