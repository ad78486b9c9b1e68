#include "runtime/cli/generate_command.h"

#include <glog/logging.h>

#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/utf8.h"
#include "runtime/cli/connect.h"
#include "runtime/cli/engine_flags.h"
#include "runtime/cli/flags.h"
#include "runtime/cli/generation_printer.h"
#include "runtime/cli/security_flags.h"
#include "runtime/client/client.h"
#include "runtime/server/request_conversion.h"
#include "runtime/server/response_queue.h"

namespace folio {
namespace {

constexpr char kExamples[] = R"(Examples:
  folio generate --prompt "Once upon a time" --max-tokens 32
  folio generate --server 127.0.0.1:50051 --prompt Hello --temperature 0.8 --seed 7
  folio generate --model my-model --token-ids 1,2,3 --logprobs 5 --prompt-logprobs --json
  folio generate --prompt "Once upon a time" --echo --stop . --include-stop
  folio generate --prompt "Once upon a time" --n 4 --temperature 0.8 --max-tokens 16
  folio generate --server 127.0.0.1:50051 --prompt Hello --tenant alice --priority -5
  folio generate --server 10.0.0.7:50051 --tls-ca ca.crt --token-file token --prompt Hello
  folio generate --prompt Hello --no-cache

Without --server it runs in this process. With --json there is a line for each
new piece, {"token_ids", "text"}, and a last one with all token_ids, text,
finish_reason, stop (the text that was found), usage (durations in seconds), seed
and, where asked for, logprobs, prompt_logprobs, prompt_token_ids and
prompt_text. With --n above 1, each piece says its sample_index, and the
last line has "samples", a list with an object for each; text comes sample after
sample. Sample i is what --seed S + i alone would give. Special tokens, such as
the one that ends a text, have no text (use --json to see their ids).)";

struct GenerateFlags {
  std::optional<std::string> server;  // Absent: in this process.
  ClientSecurityFlags security;
  EngineFlags engine;
  bool no_cache = false;

  std::optional<std::string> prompt;
  bool parse_special = false;
  std::vector<int32_t> token_ids;  // Without `prompt`.
  std::optional<int32_t> max_tokens;
  bool ignore_eos = false;
  std::optional<float> temperature;
  std::optional<int32_t> top_k;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<float> repetition_penalty;
  std::optional<float> presence_penalty;
  std::optional<float> frequency_penalty;
  std::vector<std::string> bad_words;
  std::vector<std::string> stop;
  bool include_stop = false;
  std::optional<int32_t> min_tokens;
  bool echo = false;
  std::optional<uint64_t> seed;
  std::optional<int32_t> logprobs;
  bool prompt_logprobs = false;
  int32_t n = 1;
  std::optional<int32_t> priority;
  std::string tenant;
  bool json = false;
};

// A string of a proto has to be valid UTF-8.
template <typename RepeatedString>
absl::Status AddTexts(const char* flag, const std::vector<std::string>& texts,
                      RepeatedString& proto) {
  for (const std::string& text : texts) {
    if (!IsValidUtf8(text)) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, " is not valid UTF-8"));
    }
    *proto.Add() = text;
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::GenerateRequest> ToProto(const GenerateFlags& flags) {
  v1::GenerateRequest request;
  if (flags.prompt.has_value()) {
    if (!IsValidUtf8(*flags.prompt)) {
      return absl::InvalidArgumentError(
          "--prompt is not valid UTF-8; give such bytes as --token-ids");
    }
    request.set_text(*flags.prompt);
    request.set_parse_special(flags.parse_special);
  } else {
    request.mutable_token_ids()->mutable_ids()->Add(flags.token_ids.begin(),
                                                    flags.token_ids.end());
  }
  if (flags.max_tokens) request.set_max_tokens(*flags.max_tokens);
  if (flags.ignore_eos) request.set_ignore_eos(true);
  request.set_n(flags.n);
  if (flags.priority) request.set_priority(*flags.priority);
  if (!IsValidUtf8(flags.tenant)) {
    return absl::InvalidArgumentError("--tenant is not valid UTF-8");
  }
  request.set_tenant(flags.tenant);
  FOLIO_RETURN_IF_ERROR(
      AddTexts("--stop", flags.stop, *request.mutable_stop()));
  request.set_include_stop(flags.include_stop);
  if (flags.min_tokens) request.set_min_tokens(*flags.min_tokens);
  if (flags.echo) request.set_echo(true);
  v1::SamplingParams& sampling = *request.mutable_sampling();
  if (flags.temperature) sampling.set_temperature(*flags.temperature);
  if (flags.top_k) sampling.set_top_k(*flags.top_k);
  if (flags.top_p) sampling.set_top_p(*flags.top_p);
  if (flags.min_p) sampling.set_min_p(*flags.min_p);
  if (flags.repetition_penalty) {
    sampling.set_repetition_penalty(*flags.repetition_penalty);
  }
  if (flags.presence_penalty) {
    sampling.set_presence_penalty(*flags.presence_penalty);
  }
  if (flags.frequency_penalty) {
    sampling.set_frequency_penalty(*flags.frequency_penalty);
  }
  FOLIO_RETURN_IF_ERROR(
      AddTexts("--bad-word", flags.bad_words, *sampling.mutable_bad_words()));
  if (flags.seed) sampling.set_seed(*flags.seed);
  if (flags.logprobs) sampling.set_logprobs(*flags.logprobs);
  if (flags.prompt_logprobs) sampling.set_prompt_logprobs(true);
  return request;
}

absl::Status GenerateRemotely(const std::string& server,
                              const ClientSecurityFlags& security,
                              const v1::GenerateRequest& request,
                              GenerationPrinter& printer) {
  FOLIO_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client,
                         ConnectTo(server, security));
  const auto print = [&](const v1::GenerateResponse& response) {
    printer.Add(response);
    return std::cout.good();
  };
  return ExplainBroken(client->Generate(request, print), server, kIncomplete);
}

absl::Status GenerateHere(const GenerateFlags& flags,
                          const v1::GenerateRequest& proto,
                          GenerationPrinter& printer) {
  EngineOptions options = flags.engine.ToOptions();
  options.scheduler.recompute_always = flags.no_cache;
  FOLIO_ASSIGN_OR_RETURN(const std::unique_ptr<OpenedEngine> opened,
                         OpenEngine(flags.engine, options));
  Engine& engine = *opened->engine;
  LOG_IF(WARNING, !flags.json && opened->tokenizer->info().kind == "none")
      << "this model came without a tokenizer, so its tokens have no text; "
         "--json shows their ids";
  FOLIO_ASSIGN_OR_RETURN(
      Request request,
      RequestFromProto(proto, engine.model_info(), *opened->tokenizer));
  FOLIO_RETURN_IF_ERROR(engine.Prepare(request));
  ResponseQueue responses(/*name=*/"", request);
  if (proto.echo()) responses.AddEcho(*opened->tokenizer, request.prompt);
  FOLIO_RETURN_IF_ERROR(engine.Submit(std::move(request)));

  StepOutput output;
  while (true) {
    engine.Step(output);
    responses.Add(output.events.span());
    while (!responses.empty()) printer.Add(responses.Pop());
    if (responses.end().has_value()) return *responses.end();
    if (!std::cout.good()) return absl::CancelledError("nobody reads stdout");
  }
}

absl::Status Generate(const GenerateFlags& flags) {
  FOLIO_ASSIGN_OR_RETURN(const v1::GenerateRequest request, ToProto(flags));
  GenerationPrinter printer(flags.json, /*many=*/flags.n > 1);
  FOLIO_RETURN_IF_ERROR(
      flags.server.has_value()
          ? GenerateRemotely(*flags.server, flags.security, request, printer)
          : GenerateHere(flags, request, printer));
  printer.Finish(flags.logprobs.has_value(), flags.prompt_logprobs);
  return absl::OkStatus();
}

void AddInputOptions(CLI::App& app, GenerateFlags& flags) {
  CLI::App* const input = app.add_option_group("Prompt", "exactly one of");
  input->add_option("--prompt", flags.prompt, "Text")->type_name("TEXT");
  AddListOption(*input, "--token-ids", flags.token_ids, "Token ids");
  input->require_option(1);
  app.add_flag("--parse-special", flags.parse_special,
               "Special tokens written in --prompt are meant as such");
}

// When a sample ends, and what its text is then.
void AddEndOptions(CLI::App& app, GenerateFlags& flags) {
  app.add_option("--max-tokens", flags.max_tokens,
                 "Most tokens to generate. Default: as many as fit")
      ->type_name("N");
  app.add_flag("--ignore-eos", flags.ignore_eos,
               "Go on after the model's end-of-sequence tokens");
  app.add_option("--stop", flags.stop,
                 "Text that ends a sample; may be given several times")
      ->type_name("TEXT");
  app.add_flag("--include-stop", flags.include_stop,
               "Let the text end with the stop text, not before it");
  app.add_option("--min-tokens", flags.min_tokens,
                 "Let nothing end a sample before so many tokens. Default: 0")
      ->type_name("N");
  app.add_flag("--echo", flags.echo, "Print the prompt first");
}

void AddSamplingOptions(CLI::App& app, GenerateFlags& flags) {
  app.add_option("--temperature", flags.temperature,
                 "0: greedy (the default); above: softmax(logits / T)")
      ->type_name("T");
  app.add_option("--top-k", flags.top_k,
                 "Draw among the K likeliest tokens only. Default: 0, all")
      ->type_name("K");
  app.add_option("--top-p", flags.top_p,
                 "Draw among the fewest likeliest tokens that have probability "
                 "P together. Default: 1, all")
      ->type_name("P");
  app.add_option("--min-p", flags.min_p,
                 "Draw among tokens at least this share as likely as the "
                 "likeliest. Default: 0, all")
      ->type_name("P");
  app.add_option("--repetition-penalty", flags.repetition_penalty,
                 "Above 1, tokens of the prompt and generated ones become less "
                 "likely. Default: 1")
      ->type_name("X");
  app.add_option("--presence-penalty", flags.presence_penalty,
                 "Taken from the logits of generated tokens. Default: 0")
      ->type_name("X");
  app.add_option("--frequency-penalty", flags.frequency_penalty,
                 "The same, as often as they were generated. Default: 0")
      ->type_name("X");
  app.add_option("--bad-word", flags.bad_words,
                 "A word that must not come; may be given several times")
      ->type_name("TEXT");
  AddSeedOption(app, flags.seed,
                "Equal seeds give equal tokens. Default: drawn");
  app.add_option("--logprobs", flags.logprobs,
                 "Logprob of each token, and of the K likeliest")
      ->type_name("K");
  app.add_flag("--prompt-logprobs", flags.prompt_logprobs,
               "Logprobs of the prompt's tokens, too");
}

void AddRequestOptions(CLI::App& app, GenerateFlags& flags) {
  app.add_option("--n", flags.n,
                 "Samples to generate from the one prompt, whose memory they "
                 "share")
      ->check(CLI::Range(1, kMaxBatchSequences).description(""))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--priority", flags.priority,
                 "From -100 to 100; of two that wait, the smaller one goes "
                 "first, where the server has --policy priority. Default: 0")
      ->type_name("P");
  app.add_option("--tenant", flags.tenant,
                 "Whom the request is for: what the server shares fairly "
                 "among, limits, and keeps cached prompts apart by")
      ->type_name("NAME");
  app.add_flag("--json", flags.json, "One JSON object a line");
}

// Flags that only an engine in this process can follow.
void RefuseWithServer(const CLI::App& engine_options) {
  for (const CLI::Option* option : engine_options.get_options()) {
    if (option->count() == 0) continue;
    throw CLI::ValidationError(
        option->get_name(),
        "a server has an engine of its own; leave out this flag or --server");
  }
}

}  // namespace

void AddGenerateCommand(CLI::App& app, CommandRun& run) {
  const auto flags = std::make_shared<GenerateFlags>();
  CLI::App* const command = app.add_subcommand(
      "generate", "Generates from one prompt, streaming to stdout");
  command->footer(kExamples);
  CLI::Option* const server =
      AddServerOption(*command, flags->server,
                      "A running server. Default: run in this process");
  AddInputOptions(*command, *flags);
  AddEndOptions(*command, *flags);
  AddSamplingOptions(*command, *flags);
  AddRequestOptions(*command, *flags);
  AddClientSecurityFlags(*command, server, flags->security);
  CLI::App* const engine =
      command->add_option_group("Engine", "without --server");
  AddEngineFlags(*engine, flags->engine);
  engine->add_flag("--no-cache", flags->no_cache,
                   "Compute the whole sequence again for every token");
  command->callback([flags, engine, &run] {
    if (flags->server.has_value()) RefuseWithServer(*engine);
    run = [flags] { return Generate(*flags); };
  });
}

}  // namespace folio
