// One case of tests/test_grpc_clients.py, by @grpc/grpc-js: node grpc_client.mjs MODULES PROTOS TARGET CASE [CA CERT KEY]
import {createRequire} from 'node:module';
import fs from 'node:fs';
import path from 'node:path';

const [modules, protos, target, name, ca, cert, key] = process.argv.slice(2);
const require = createRequire(path.join(modules, 'package.json'));
const grpc = require('@grpc/grpc-js');
const definition = require('@grpc/proto-loader').loadSync(
    ['sglang/runtime/v1/sglang.proto', 'grpc/health/v1/health.proto', 'grpc/reflection/v1/reflection.proto'],
    {includeDirs: [protos], keepCase: true, defaults: true});
const loaded = grpc.loadPackageDefinition(definition);
const {SglangService} = loaded.sglang.runtime.v1;

const read = (file) => (file ? fs.readFileSync(file) : null);
const credentials = ca ? grpc.credentials.createSsl(read(ca), read(key), read(cert)) : grpc.credentials.createInsecure();
const options = {'grpc.max_receive_message_length': 64 << 20, 'grpc.max_send_message_length': 64 << 20};
if (name === 'gzip') options['grpc.default_compression_algorithm'] = grpc.compressionAlgorithms.gzip;
const client = new SglangService(target, credentials, options);

const expect = (true_, what) => {
  if (!true_) throw new Error(what);
};
const soon = () => ({deadline: Date.now() + 60_000});
// A call's answer, or for a stream its messages; `code` is that of its end.
const end = (call, each = () => {}) => new Promise((resolve) => {
  const messages = [];
  call.on('data', (message) => {
    messages.push(message);
    each(message, call);
  });
  call.on('error', (error) => resolve({code: error.code, messages}));
  call.on('end', () => resolve({code: grpc.status.OK, messages}));
});
const ask = (method, request, of = client) => new Promise((resolve) => {
  of[method](request, new grpc.Metadata(), soon(), (error, answer) => resolve({code: error ? error.code : 0, answer}));
});
const endless = {text: 'hello', stream: true, sampling_params: {max_new_tokens: 20000, ignore_eos: true}};

const cases = {
  async every_rpc() {
    const allowed = [grpc.status.OK, grpc.status.INVALID_ARGUMENT, grpc.status.FAILED_PRECONDITION];
    const methods = Object.values(SglangService.service);
    expect(methods.length === 26, `${methods.length} methods`);
    for (const {originalName, path: route, responseStream} of methods) {
      const watches = route.endsWith('/WatchEngineState');
      const {code} = responseStream ?
          await end(client[originalName]({}, soon()), (_, call) => watches && call.cancel()) :
          await ask(originalName, {});
      expect(watches ? code === grpc.status.CANCELLED : allowed.includes(code), `${route}: ${code}`);
    }
  },
  async health() {
    const health = new loaded.grpc.health.v1.Health(target, credentials);
    const {answer} = await ask('Check', {service: 'sglang.runtime.v1.SglangService'}, health);
    expect(answer.status === 1 || answer.status === 'SERVING', JSON.stringify(answer));
  },
  async reflection() {
    const call = new loaded.grpc.reflection.v1.ServerReflection(target, credentials).ServerReflectionInfo();
    call.write({list_services: ''});
    call.end();
    const {messages} = await end(call);
    const services = messages[0].list_services_response.service.map((service) => service.name);
    expect(services.includes('sglang.runtime.v1.SglangService'), services.join());
  },
  async large() {
    const text = 'word '.repeat(2 << 20);
    const {answer} = await ask('Tokenize', {text});
    expect(answer && answer.input_text === text, 'the text came back otherwise');
    const back = await ask('Detokenize', {tokens: answer.tokens});
    expect(back.answer && back.answer.text === text, 'the tokens came back otherwise');
  },
  async deadline() {
    const {code} = await end(client.TextGenerate(endless, {deadline: Date.now() + 300}));
    expect(code === grpc.status.DEADLINE_EXCEEDED, `code ${code}`);
  },
  async cancel() {
    const {code} = await end(client.TextGenerate(endless), (_, call) => call.cancel());
    expect(code === grpc.status.CANCELLED, `code ${code}`);
  },
  async streams() {
    const request = {...endless, sampling_params: {max_new_tokens: 8, ignore_eos: true}};
    const ends = await Promise.all(Array.from({length: 1000}, () => end(client.TextGenerate(request, soon()))));
    expect(ends.every(({messages}) => messages.length && messages.at(-1).finished), 'a stream did not end well');
  },
  // The other side begins to drain when it has read "begun".
  async drain() {
    const request = {...endless, sampling_params: {max_new_tokens: 300, ignore_eos: true}};
    let first = true;
    const {messages} = await end(client.TextGenerate(request, soon()), () => {
      if (first) console.log('begun');
      first = false;
    });
    expect(messages.at(-1).finished, 'the stream was cut off');
  },
};
cases.gzip = cases.large;

try {
  await cases[name]();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
client.close();
