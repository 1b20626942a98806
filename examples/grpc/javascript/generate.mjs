// Streams an answer over gRPC: node generate.mjs [HOST:PORT] [PROMPT]
//
// Needs @grpc/grpc-js and @grpc/proto-loader, which reads the .proto file as it is; nothing is generated. With a key
// in PORTICO_API_KEY it is sent along.
import {createRequire} from 'node:module';
import path from 'node:path';
import {fileURLToPath} from 'node:url';

// Packages are looked up from where the program is started.
const require = createRequire(path.join(process.cwd(), 'package.json'));
const grpc = require('@grpc/grpc-js');
const protoLoader = require('@grpc/proto-loader');

const here = path.dirname(fileURLToPath(import.meta.url));
const protos = path.join(here, '../../../proto');
const definition = protoLoader.loadSync('sglang/runtime/v1/sglang.proto', {
  includeDirs: [protos],
  keepCase: true,
  defaults: true,
});
const {SglangService} = grpc.loadPackageDefinition(definition).sglang.runtime.v1;

// TextGenerate takes the text as it is, without a chat template; ChatComplete takes messages.
const PROMPT = '<|im_start|>user\nWhat is 7 plus 5?<|im_end|>\n<|im_start|>assistant\n';
const [target = '127.0.0.1:30000', prompt = PROMPT] = process.argv.slice(2);
// grpc-js refuses messages above 4 MiB unless it is told otherwise; the server's own limit is 64 MiB.
const client = new SglangService(target, grpc.credentials.createInsecure(), {
  'grpc.max_receive_message_length': 64 << 20,
});
const metadata = new grpc.Metadata();
if (process.env.PORTICO_API_KEY) {
  metadata.set('authorization', `Bearer ${process.env.PORTICO_API_KEY}`);
}

const call = client.TextGenerate(
    {text: prompt, sampling_params: {temperature: 0, max_new_tokens: 32}, stream: true}, metadata,
    {deadline: Date.now() + 60_000});
// Each message has the text that is new since the last one; the last has finished=true.
call.on('data', (message) => {
  process.stdout.write(message.text);
  if (message.finished) process.stdout.write(`\nfinish_reason: ${message.meta_info.finish_reason}\n`);
});
call.on('error', (error) => {
  console.error(`${grpc.status[error.code]}: ${error.details}`);
  process.exitCode = 1;
});
call.on('end', () => client.close());
