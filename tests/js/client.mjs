// The official openai package for JavaScript against a running server; prints one JSON line.
import { createRequire } from "node:module";

const [packages, url] = process.argv.slice(2);
const OpenAI = createRequire(packages + "/")("openai").default;
const client = new OpenAI({ baseURL: url + "/v1", apiKey: "none", maxRetries: 0 });
const question = {
  model: "demo",
  messages: [{ role: "user", content: "What is 7 plus 5?" }],
  max_tokens: 24,
  temperature: 0,
};

const whole = await client.chat.completions.create(question);
let streamed = "";
let finish = null;
let usage = null;
const stream = await client.chat.completions.create({
  ...question,
  stream: true,
  stream_options: { include_usage: true },
});
for await (const chunk of stream) {
  for (const choice of chunk.choices) {
    streamed += choice.delta.content ?? "";
    finish = choice.finish_reason ?? finish;
  }
  usage = chunk.usage ?? usage;
}

const completion = await client.completions.create({ model: "demo", prompt: "One two", max_tokens: 4 });

let refused = null;
try {
  await client.chat.completions.create({ ...question, top_p: 7 });
} catch (error) {
  refused = { status: error.status, param: error.param };
}

const left = await client.chat.completions.create({ ...question, max_tokens: 200, stream: true });
for await (const chunk of left) {
  if (chunk.choices[0]?.delta?.content) break;
}

console.log(
  JSON.stringify({
    whole: whole.choices[0].message.content,
    streamed,
    finish,
    usage,
    completion: completion.choices[0].text,
    refused,
  }),
);
