// Speech, transcriptions, chats with sound and a realtime session by the official openai package for JavaScript; prints one JSON line.
import { createRequire } from "node:module";

const [packages, url] = process.argv.slice(2);
const require = createRequire(packages + "/");
const { default: OpenAI, toFile } = require("openai");
const { OpenAIRealtimeWebSocket } = require("openai/realtime/websocket");
const client = new OpenAI({ baseURL: url + "/v1", apiKey: "none", maxRetries: 0 });

const question = "What is the capital of Japan?";
const speech = { model: "demo", voice: "kal16", input: question };
const bytes = async (response) => Buffer.from(await response.arrayBuffer());
const wav = await bytes(await client.audio.speech.create({ ...speech, response_format: "wav" }));
const pcm = await bytes(await client.audio.speech.create({ ...speech, response_format: "pcm" }));

// As it comes, and as events.
const pieces = [];
for await (const piece of (await client.audio.speech.create({ ...speech, response_format: "pcm" })).body) pieces.push(piece);
const told = await (await client.audio.speech.create({ ...speech, response_format: "pcm", stream_format: "sse" })).text();
const events = told
  .split("\n")
  .filter((line) => line.startsWith("data: "))
  .map((line) => JSON.parse(line.slice(6)));
const spoken = Buffer.concat(
  events.filter((event) => event.type === "speech.audio.delta").map((event) => Buffer.from(event.audio, "base64")),
);

const file = () => toFile(wav, "question.wav");
const heard = await client.audio.transcriptions.create({ model: "demo", file: await file() });
const timed = await client.audio.transcriptions.create({
  model: "demo",
  file: await file(),
  response_format: "verbose_json",
  timestamp_granularities: ["word"],
});
let deltas = "";
let last = null;
for await (const event of await client.audio.transcriptions.create({ model: "demo", file: await file(), stream: true })) {
  if (event.type === "transcript.text.delta") deltas += event.delta;
  last = event;
}

const chat = {
  model: "demo",
  temperature: 0,
  modalities: ["text", "audio"],
  audio: { voice: "echo", format: "wav" },
  messages: [
    { role: "user", content: [{ type: "input_audio", input_audio: { data: wav.toString("base64"), format: "wav" } }] },
  ],
};
const aloud = (await client.chat.completions.create(chat)).choices[0].message;
const again = await client.audio.transcriptions.create({
  model: "demo",
  file: await toFile(Buffer.from(aloud.audio.data, "base64"), "answer.wav"),
});
let text = "";
const sound = [];
for await (const chunk of await client.chat.completions.create({ ...chat, stream: true })) {
  const delta = chunk.choices[0]?.delta ?? {};
  text += delta.content ?? "";
  if (delta.audio?.data) sound.push(Buffer.from(delta.audio.data, "base64"));
}

let refused = null;
try {
  await client.audio.speech.create({ ...speech, voice: "nobody" });
} catch (error) {
  refused = { status: error.status, param: error.param };
}

// A session: the question aloud, the answer as sound and its transcript.
const session = await new Promise((resolve, reject) => {
  const realtime = new OpenAIRealtimeWebSocket({ model: "demo" }, client);
  const got = { asked: "", answered: "", sound: 0 };
  const fail = (error) => reject(new Error(`realtime: ${error.message}`));
  setTimeout(() => fail(new Error("no end")), 100_000).unref();
  realtime.on("error", fail);
  realtime.on("session.created", () => {
    realtime.send({
      type: "session.update",
      session: {
        type: "realtime",
        output_modalities: ["audio"],
        audio: { input: { turn_detection: null, transcription: { model: "whisper-1" } }, output: { voice: "echo" } },
      },
    });
  });
  realtime.on("session.updated", () => {
    for (let at = 0; at < pcm.length; at += 48_000) {
      realtime.send({ type: "input_audio_buffer.append", audio: pcm.subarray(at, at + 48_000).toString("base64") });
    }
    realtime.send({ type: "input_audio_buffer.commit" });
    realtime.send({ type: "response.create" });
  });
  realtime.on("conversation.item.input_audio_transcription.completed", (event) => (got.asked = event.transcript));
  realtime.on("response.output_audio_transcript.delta", (event) => (got.answered += event.delta));
  realtime.on("response.output_audio.delta", (event) => (got.sound += Buffer.from(event.delta, "base64").length));
  realtime.on("response.done", (event) => {
    got.status = event.response.status;
    realtime.close();
    resolve(got);
  });
});

console.log(
  JSON.stringify({
    wav: wav.subarray(0, 4).toString(),
    pcm: pcm.length,
    streamed: Buffer.concat(pieces).equals(pcm),
    events: spoken.equals(pcm) && events.at(-1).type,
    heard: heard.text,
    timed: { text: timed.text, words: timed.words.map((word) => word.word).join(" ") },
    deltas,
    last: { type: last.type, text: last.text },
    aloud: aloud.audio.transcript,
    again: again.text,
    chat: { text, files: Buffer.concat(sound).toString("latin1").split("RIFF").length - 1 },
    refused,
    session,
  }),
);
