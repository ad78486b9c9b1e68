// Streams a completion from `folio serve`, whose .proto files it reads itself:
//
//   cd runtime/examples/node
//   npm install --no-package-lock
//   node generate.mjs --prompt "Once upon a time"
//
// Ctrl-C cancels it. A token in the environment variable FOLIO_TOKEN is sent
// along. --tls-ca PATH, certificates to trust, makes it a TLS connection;
// --timeout is in seconds; --proto says where the .proto files are.

import {readFileSync} from "node:fs";
import {fileURLToPath} from "node:url";
import {parseArgs} from "node:util";

import grpc from "@grpc/grpc-js";
import protoLoader from "@grpc/proto-loader";

const text = {type: "string"};
const {values: args} = parseArgs({
  options: {
    "server": {...text, default: "127.0.0.1:50051"},
    "proto": {...text, default: fileURLToPath(new URL("../../../proto", import.meta.url))},
    "tls-ca": text,
    "timeout": text,
    "prompt": {...text, default: "Once upon a time"},
    "max-tokens": text,
    "temperature": text,
    "top-p": text,
    "seed": text,
  },
});

// What is undefined is left out: the server has defaults.
function number(name) {
  if (args[name] === undefined) return undefined;
  const value = Number(args[name]);
  if (Number.isNaN(value)) throw new Error(`--${name} is '${args[name]}', which is no number`);
  return value;
}

function connect() {
  // With defaults, a text that is empty is there, too.
  const loaded = protoLoader.loadSync("folio/v1/generation.proto",
                                      {includeDirs: [args.proto], keepCase: true, defaults: true});
  const {folio} = grpc.loadPackageDefinition(loaded);
  const {createInsecure, createSsl} = grpc.credentials;
  const ca = args["tls-ca"];
  return new folio.v1.Generation(args.server, ca ? createSsl(readFileSync(ca)) : createInsecure());
}

async function generate(client) {
  const metadata = new grpc.Metadata();
  if (process.env.FOLIO_TOKEN) metadata.set("authorization", `Bearer ${process.env.FOLIO_TOKEN}`);
  const timeout = number("timeout");
  const call = client.Generate({
    text: args.prompt,
    max_tokens: number("max-tokens"),
    sampling: {temperature: number("temperature"), top_p: number("top-p"), seed: number("seed")},
  }, metadata, timeout === undefined ? {} : {deadline: Date.now() + 1000 * timeout});
  process.once("SIGINT", () => call.cancel());

  let usage;
  for await (const response of call) {
    process.stdout.write(response.text);
    usage = response.usage;  // The last response has it.
  }
  process.stdout.write("\n");
  console.error(`${usage.prompt_tokens} tokens of prompt, ${usage.generated_tokens} generated`);
}

const client = connect();
try {
  await generate(client);
} catch (error) {
  const name = grpc.status[error.code];
  if (name === undefined) throw error;  // Not the call's.
  if (name !== "CANCELLED") console.error(`${name}: ${error.details}`);
  process.exitCode = name === "CANCELLED" ? 130 : 1;
} finally {
  client.close();
}
