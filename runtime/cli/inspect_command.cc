#include "runtime/cli/inspect_command.h"

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
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cache/kv_cache.h"
#include "cache/kv_layout.h"
#include "runtime/base/byte_size.h"
#include "runtime/base/status_macros.h"
#include "runtime/cli/engine_flags.h"
#include "runtime/cli/flags.h"
#include "runtime/cli/json_line.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/model_tokenizer.h"
#include "runtime/model/decoder_weights.h"
#include "runtime/model/model_registry.h"
#include "runtime/tokenizer/open_tokenizer.h"

namespace folio {
namespace {

constexpr char kExamples[] = R"(Examples:
  folio inspect
  folio inspect my-model.gguf --context 4096 --sequences 32 --kv-pool 8GiB
  folio inspect my-model --kv-dtype bf16 --json
  folio inspect --layers 32 --kv-heads 32 --head-dim 128 --kv-dtype bf16 --context 4096

Reads a model's headers and tokenizer, not its weights. Instead of a model,
--layers, --kv-heads and --head-dim describe the K/V of one. K/V take
2 * layers * KV heads * head dimension * bytes per element for each token.
Weights are counted without the padding that packing adds.)";

struct InspectFlags {
  std::string model;
  WantedTypes types;
  std::optional<int32_t> layers;  // Either all three of these, or a model.
  std::optional<int32_t> kv_heads;
  std::optional<int32_t> head_dim;
  std::optional<int32_t> context;
  int32_t sequences = 1;
  std::optional<int64_t> kv_pool_bytes;
  int32_t page_size = EngineOptions().page_size;
  bool json = false;

  bool has_shape() const { return layers || kv_heads || head_dim; }
};

// Adds the members of a model that can be loaded.
void DescribeModel(const ModelSource& source, const ModelTypes& types,
                   Json& json) {
  const DecoderConfig& config = source.config;
  json["parameters"] = NumParameters(ExpectedTensors(config, source.names));
  json["layers"] = config.num_layers;
  json["hidden_size"] = config.hidden_size;
  json["ffn_size"] = config.ffn_size;
  json["heads"] = config.num_heads;
  json["kv_heads"] = config.num_kv_heads;
  json["head_dim"] = config.head_dim;
  json["vocab_size"] = config.vocab_size;
  json["context_length"] = config.context_length;
  if (config.window.has_value()) json["window"] = *config.window;
  json["tied_head"] = config.tied_head;
  json["stored_elements"] = source.weights->stored_elements();
  json["weights"] = {
      {"dtype", std::string(NameOf(types.weights))},
      {"bytes", WeightBytes(config, source.names, types.weights)}};
}

void DescribeTokenizer(const TokenizerInfo& tokenizer, Json& json) {
  json["tokenizer"] = {{"kind", tokenizer.kind},
                       {"pre_tokenizer", tokenizer.pre_tokenizer},
                       {"vocab_size", tokenizer.vocab_size},
                       {"merges", tokenizer.num_merges},
                       {"special_tokens", tokenizer.num_special_tokens}};
}

// What sequences of `context` tokens take in a pool.
absl::Status DescribeKv(const InspectFlags& flags, const KvShape& shape,
                        ElementType type, std::optional<int32_t> window,
                        int32_t context, Json& json) {
  int64_t bytes;
  if (__builtin_mul_overflow(shape.BytesPerToken(), context, &bytes) ||
      __builtin_mul_overflow(bytes, flags.sequences, &bytes)) {
    return absl::InvalidArgumentError(absl::StrCat(
        flags.sequences, " sequences of ", context, " tokens of ",
        shape.BytesPerToken(), " bytes take more than 2^63 bytes"));
  }
  const KvLayout layout(shape, flags.page_size);
  const int64_t pool =
      flags.kv_pool_bytes.value_or(EngineOptions().kv_pool_bytes);
  const int64_t pool_pages = pool / layout.page_bytes();
  // (Only its arithmetic is wanted: no pages are handed out.)
  const KvCache cache(layout, /*num_pages=*/0, {.window = window});
  const int64_t sequence_pages = cache.PagesInWindow(context);
  json["kv"] = {{"dtype", std::string(NameOf(type))},
                {"bytes_per_token", shape.BytesPerToken()},
                {"page_size", flags.page_size},
                {"page_bytes", layout.page_bytes()},
                {"page_scale_bytes", layout.scale_bytes()},
                {"page_padding_bytes", layout.padding_bytes()},
                {"sequence_length", context},
                {"sequence_bytes", shape.Bytes(1, context)},
                {"sequence_pages", sequence_pages},
                {"sequence_held_bytes", sequence_pages * layout.page_bytes()},
                {"sequences", flags.sequences},
                {"sequences_bytes", shape.Bytes(flags.sequences, context)},
                {"pool_bytes", pool},
                {"pool_pages", pool_pages},
                {"sequences_that_fit", pool_pages / sequence_pages}};
  return absl::OkStatus();
}

absl::StatusOr<Json> InspectShape(const InspectFlags& flags) {
  const ElementType type = flags.types.kv.value_or(ElementType::kF32);
  const KvShape shape{.num_layers = *flags.layers,
                      .num_kv_heads = *flags.kv_heads,
                      .head_dim = *flags.head_dim,
                      .bytes_per_element = BytesOf(type),
                      .scale_bytes = KvScaleBytesOf(type)};
  Json json;
  FOLIO_RETURN_IF_ERROR(DescribeKv(flags, shape, type, std::nullopt,
                                   flags.context.value_or(4096), json));
  return json;
}

// A GGUF file of vocabulary only has a tokenizer and nothing to compute.
bool IsVocabularyOnly(const ModelLocation& location) {
  return location.gguf != nullptr && location.gguf->tensors().tensors.empty() &&
         location.gguf->tensors().unreadable.empty();
}

absl::StatusOr<Json> InspectModel(const InspectFlags& flags) {
  FOLIO_ASSIGN_OR_RETURN(const ModelLocation location, FindModel(flags.model));
  Json json;
  json["model"] = location.name;
  if (IsVocabularyOnly(location)) {
    FOLIO_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                           OpenGgufTokenizer(*location.gguf));
    DescribeTokenizer(tokenizer->info(), json);
    return json;
  }
  FOLIO_ASSIGN_OR_RETURN(const ModelSource source, OpenModelSource(location));
  const DecoderConfig& config = source.config;
  const ModelTypes types = ChooseTypes(source, flags.types);
  json["architecture"] = config.architecture;
  DescribeModel(source, types, json);
  FOLIO_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                         OpenTokenizerOf(location, config));
  DescribeTokenizer(tokenizer->info(), json);
  const KvShape shape{.num_layers = config.num_layers,
                      .num_kv_heads = config.num_kv_heads,
                      .head_dim = config.head_dim,
                      .bytes_per_element = BytesOf(types.kv),
                      .scale_bytes = KvScaleBytesOf(types.kv)};
  FOLIO_RETURN_IF_ERROR(
      DescribeKv(flags, shape, types.kv, config.window,
                 flags.context.value_or(config.context_length), json));
  return json;
}

void PrintLine(const char* name, const std::string& value) {
  std::cout << absl::StrFormat("%-12s %s\n", name, value);
}

std::string Bytes(const Json& bytes) {
  return FormatByteSize(bytes.get<int64_t>());
}

void PrintModel(const Json& json) {
  PrintLine("model", absl::StrCat(json["model"].get<std::string>(), ", a ",
                                  json["architecture"].get<std::string>()));
  PrintLine("parameters", absl::StrCat(json["parameters"].get<int64_t>()));
  PrintLine("sizes",
            absl::StrFormat(
                "%d layers, hidden %d, FFN %d, %d heads of %d, %d for K/V",
                json["layers"].get<int>(), json["hidden_size"].get<int>(),
                json["ffn_size"].get<int>(), json["heads"].get<int>(),
                json["head_dim"].get<int>(), json["kv_heads"].get<int>()));
  PrintLine("vocabulary", absl::StrCat(json["vocab_size"].get<int>()));
  PrintLine("context",
            absl::StrCat(json["context_length"].get<int>(),
                         json.contains("window")
                             ? absl::StrCat(", in a sliding window of ",
                                            json["window"].get<int>())
                             : ""));
  std::vector<std::string> stored;
  for (const auto& [type, elements] : json["stored_elements"].items()) {
    stored.push_back(absl::StrCat(elements.get<int64_t>(), " in ", type));
  }
  PrintLine("stored", absl::StrJoin(stored, ", "));
  PrintLine("weights",
            absl::StrCat(Bytes(json["weights"]["bytes"]), " in ",
                         json["weights"]["dtype"].get<std::string>()));
}

void PrintTokenizer(const Json& tokenizer) {
  const std::string pre = tokenizer["pre_tokenizer"].get<std::string>();
  PrintLine("tokenizer",
            absl::StrFormat("%s%s: %d tokens, %d of them special, %d merges",
                            tokenizer["kind"].get<std::string>(),
                            pre.empty() ? "" : absl::StrCat(" (", pre, ")"),
                            tokenizer["vocab_size"].get<int>(),
                            tokenizer["special_tokens"].get<int>(),
                            tokenizer["merges"].get<int>()));
}

void PrintKv(const Json& kv) {
  PrintLine("K/V",
            absl::StrFormat(
                "%s: a token takes %s, a page of %d tokens %s",
                kv["dtype"].get<std::string>(), Bytes(kv["bytes_per_token"]),
                kv["page_size"].get<int>(), Bytes(kv["page_bytes"])));
  PrintLine("a sequence",
            absl::StrFormat("of %d tokens has %s of K/V; between steps it "
                            "holds up to %d pages, %s",
                            kv["sequence_length"].get<int>(),
                            Bytes(kv["sequence_bytes"]),
                            kv["sequence_pages"].get<int64_t>(),
                            Bytes(kv["sequence_held_bytes"])));
  if (kv["sequences"].get<int>() != 1) {
    PrintLine("sequences",
              absl::StrFormat("%d of them take %s", kv["sequences"].get<int>(),
                              Bytes(kv["sequences_bytes"])));
  }
  PrintLine(
      "a pool",
      absl::StrFormat("of %s has %d pages: %d such sequences fit",
                      Bytes(kv["pool_bytes"]), kv["pool_pages"].get<int64_t>(),
                      kv["sequences_that_fit"].get<int64_t>()));
}

absl::Status Inspect(const InspectFlags& flags) {
  FOLIO_ASSIGN_OR_RETURN(const Json json, flags.has_shape()
                                              ? InspectShape(flags)
                                              : InspectModel(flags));
  if (flags.json) {
    PrintJsonLine(json);
    return absl::OkStatus();
  }
  if (json.contains("architecture")) {
    PrintModel(json);
  } else if (json.contains("model")) {
    PrintLine("model", absl::StrCat(json["model"].get<std::string>(),
                                    ", a vocabulary without weights"));
  }
  if (json.contains("tokenizer")) PrintTokenizer(json["tokenizer"]);
  if (json.contains("kv")) PrintKv(json["kv"]);
  return absl::OkStatus();
}

void AddShapeOptions(CLI::App& app, InspectFlags& flags) {
  const auto add = [&](const char* name, std::optional<int32_t>& value,
                       const char* description) {
    return app.add_option(name, value, description)
        ->check(CLI::Range(1, 1024).description(""))
        ->type_name("N");
  };
  CLI::Option* const layers = add("--layers", flags.layers, "Layers");
  CLI::Option* const heads = add("--kv-heads", flags.kv_heads, "KV heads");
  CLI::Option* const dim =
      add("--head-dim", flags.head_dim, "Elements of a head");
  for (CLI::Option* one : {layers, heads, dim}) {
    for (CLI::Option* other : {layers, heads, dim}) {
      if (one != other) one->needs(other);
    }
  }
}

}  // namespace

void AddInspectCommand(CLI::App& app, CommandRun& run) {
  const auto flags = std::make_shared<InspectFlags>();
  CLI::App* const command =
      app.add_subcommand("inspect", "Says what a model is, and what it takes");
  command->footer(kExamples);
  CLI::Option* const model =
      command
          ->add_option("model", flags->model,
                       "As --model of other commands. Default: the embedded "
                       "model")
          ->type_name("PATH");
  CLI::App* const shape =
      command->add_option_group("K/V of a shape", "instead of a model");
  AddShapeOptions(*shape, *flags);
  command
      ->add_option("--context", flags->context,
                   "Tokens of a sequence. Default: the model's context")
      ->check(CLI::Range(1, 1 << 24).description(""))
      ->type_name("N");
  command->add_option("--sequences", flags->sequences, "How many sequences")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 16).description(""))
      ->type_name("N");
  AddByteSizeOption(
      *command, "--kv-pool", flags->kv_pool_bytes,
      "Memory for keys and values. Default: " + EngineFlagDefaults().kv_pool);
  command
      ->add_option("--page-size", flags->page_size,
                   "Tokens in a page: 8, 16, 32, 64 or 128")
      ->check(CLI::IsMember({8, 16, 32, 64, 128}).description(""))
      ->capture_default_str()
      ->type_name("N");
  AddTypeOptions(*command, flags->types);
  command->add_flag("--json", flags->json, "One JSON object");
  command->callback([flags, model, &run] {
    if (flags->has_shape() && model->count() > 0) {
      throw CLI::ValidationError("--layers",
                                 "give a model or a shape, not both");
    }
    run = [flags] { return Inspect(*flags); };
  });
}

}  // namespace folio
