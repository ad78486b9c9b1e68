// Runs llama.cpp on one load and prints what it took; run.py starts it.
//
//   node peer.mjs '{"packages": DIR, "gguf": PATH, "prompts": PATH, ...}'
//
// Each step is one llama_decode of one batch: for prefill, as many tokens of
// the prompts as a batch takes; for decode, one token of every stream. Logits
// are computed for the last token of a prompt and for every decoded token, and
// nothing is sampled: the tokens that are fed are those of the prompts, because
// the speed does not depend on which they are. The package's own classes queue
// and sample in JavaScript, which would count against llama.cpp, so the calls
// below go to its binding, of the version that package.json pins.

import {readFileSync} from "node:fs";
import {join} from "node:path";
import {pathToFileURL} from "node:url";

const options = JSON.parse(process.argv[2]);
const packageDir = join(options.packages, "node_modules", "node-llama-cpp");
const {getLlama} = await import(
    pathToFileURL(join(packageDir, "dist", "index.js")));
const {version} =
    JSON.parse(readFileSync(join(packageDir, "package.json"), "utf8"));
const prompts = readFileSync(options.prompts, "utf8")
                    .trim()
                    .split("\n")
                    .map((line) => Uint32Array.from(JSON.parse(line)));

const llama = await getLlama({
  gpu: false,
  build: "never",
  skipDownload: true,
  logLevel: "error",
});
const bindings = llama._bindings;
const model = new bindings.AddonModel(
    options.gguf, {addonExports: bindings, gpuLayers: 0, useMmap: true});
if (!await model.init()) throw new Error(`${options.gguf} did not load`);

// One batch. Pieces are {stream, first, tokens, wantsLogits}.
async function decode(context, pieces) {
  const total = pieces.reduce((sum, piece) => sum + piece.tokens.length, 0);
  context.initBatch(total);
  for (const {stream, first, tokens, wantsLogits} of pieces) {
    context.addToBatch(stream, first, tokens,
                       Uint32Array.from(wantsLogits ? [tokens.length - 1] : []));
  }
  const start = performance.now();
  await context.decodeBatch();
  return performance.now() - start;
}

// The prompts of all streams, cut into batches one after another.
function prefillBatches(streams) {
  const batches = [];
  let batch = [];
  let room = options.batch;
  for (let stream = 0; stream < streams; ++stream) {
    for (let first = 0; first < options.prompt_tokens;) {
      const end = Math.min(options.prompt_tokens, first + room);
      batch.push({
        stream,
        first,
        tokens: prompts[stream].subarray(first, end),
        wantsLogits: end === options.prompt_tokens,
      });
      room -= end - first;
      first = end;
      if (room === 0) {
        batches.push(batch);
        batch = [];
        room = options.batch;
      }
    }
  }
  if (batch.length > 0) batches.push(batch);
  return batches;
}

async function runLoad(streams, generateTokens, flash) {
  const context = new bindings.AddonContext(model, {
    // Each stream's part is rounded up to 256 tokens.
    contextSize: streams *
        256 * Math.ceil((options.prompt_tokens + options.generate_tokens) / 256),
    batchSize: Math.max(options.batch, streams),
    sequences: streams,
    flashAttention: flash,
    threads: options.threads,
  });
  if (!await context.init()) throw new Error("no context");
  const start = performance.now();
  let prefill = 0;
  for (const batch of prefillBatches(streams)) {
    prefill += await decode(context, batch);
  }
  // The first of a stream's tokens comes with its prompt.
  const decodeSteps = generateTokens - 1;
  let decoding = 0;
  for (let step = 0; step < decodeSteps; ++step) {
    const pieces = [];
    for (let stream = 0; stream < streams; ++stream) {
      pieces.push({
        stream,
        first: options.prompt_tokens + step,
        tokens: prompts[stream].subarray(step % options.prompt_tokens,
                                         step % options.prompt_tokens + 1),
        wantsLogits: true,
      });
    }
    decoding += await decode(context, pieces);
  }
  const total = performance.now() - start;
  await context.dispose();
  return {
    streams,
    flash_attention: flash,
    prefill_tokens_per_second: streams * options.prompt_tokens / prefill * 1e3,
    decode_tokens_per_second: streams * decodeSteps / decoding * 1e3,
    decode_steps: decodeSteps,
    // Of the whole load; not in the rates.
    outside_decode_share: (total - prefill - decoding) / total,
  };
}

console.log(JSON.stringify({
  package: `node-llama-cpp ${version}`,
  llama_cpp: llama.llamaCppRelease.release,
  system: llama.systemInfo,
}));
for (const streams of options.streams) {
  for (const flash of [true, false]) {
    // The first time, memory is touched.
    await runLoad(streams, Math.min(4, options.generate_tokens), flash);
    console.log(JSON.stringify(
        await runLoad(streams, options.generate_tokens, flash)));
  }
}
process.exit(0);
