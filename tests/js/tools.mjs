// Tools, parsed answers and reasoning by the official openai package for JavaScript; prints one JSON line.
import { createRequire } from "node:module";

const [packages, url] = process.argv.slice(2);
const OpenAI = createRequire(packages + "/")("openai").default;
const client = new OpenAI({ baseURL: url + "/v1", apiKey: "none", maxRetries: 0 });

const city = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };
const tool = (name) => ({ type: "function", function: { name, parameters: city } });
const tools = [tool("get_weather"), tool("get_time")];
const request = { model: "demo", temperature: 0, max_tokens: 200 };
const ask = (content) => [{ role: "user", content }];
const both = "What is the weather in Cologne and in Paris?";
const named = (calls) => calls.map((call) => [call.function.name, JSON.parse(call.function.arguments)]);

// Three turns, each with two calls at once, whose results go back.
const messages = [];
const turns = [];
for (const pair of [["Cologne", "Paris"], ["Rome", "Oslo"], ["Berlin", "Madrid"]]) {
  messages.push({ role: "user", content: `What is the weather in ${pair[0]} and in ${pair[1]}?` });
  const called = await client.chat.completions.create({ ...request, messages, tools });
  messages.push(called.choices[0].message);
  const calls = called.choices[0].message.tool_calls ?? [];
  for (const call of calls) {
    messages.push({ role: "tool", tool_call_id: call.id, content: '{"temperature": 20}' });
  }
  const answer = await client.chat.completions.create({ ...request, messages, tools });
  messages.push(answer.choices[0].message);
  turns.push({
    finish: called.choices[0].finish_reason,
    calls: named(calls),
    ids: new Set(calls.map((call) => call.id)).size,
    answer: answer.choices[0].message.content,
  });
}

// The package gathers a stream's deltas itself.
const gathered = await client.chat.completions.stream({ ...request, messages: ask(both), tools }).finalChatCompletion();

const runner = client.chat.completions.runTools({
  ...request,
  messages: ask(both),
  tools: [
    {
      type: "function",
      function: {
        name: "get_weather",
        parameters: city,
        parse: JSON.parse,
        function: ({ city }) => `{"city": "${city}", "temperature": 20}`,
      },
    },
  ],
});
const ran = await runner.finalContent();

const schema = { type: "object", properties: { side: { enum: ["left", "right"] } }, required: ["side"], additionalProperties: false };
const parsed = await client.chat.completions.create({
  ...request,
  messages: ask("Which side?"),
  response_format: { type: "json_schema", json_schema: { name: "seat", strict: true, schema } },
});

const required = await client.chat.completions.parse({
  ...request,
  messages: ask("Hello!"),
  tool_choice: "required",
  parallel_tool_calls: false,
  tools: [{ type: "function", function: { name: "seat", strict: true, parameters: schema } }],
});

const thought = await client.chat.completions.create({
  ...request,
  messages: ask("What is 45 plus 38?"),
  chat_template_kwargs: { enable_thinking: true },
});

let refused = null;
try {
  await client.chat.completions.create({ ...request, messages: ask("x"), tools: [tools[0], tools[0]] });
} catch (error) {
  refused = { status: error.status, param: error.param };
}

console.log(
  JSON.stringify({
    turns,
    gathered: { finish: gathered.choices[0].finish_reason, calls: named(gathered.choices[0].message.tool_calls) },
    ran,
    parsed: JSON.parse(parsed.choices[0].message.content),
    required: required.choices[0].message.tool_calls.map((call) => call.function.parsed_arguments),
    reasoning: thought.choices[0].message.reasoning_content,
    refused,
  }),
);
