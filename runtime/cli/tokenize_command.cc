#include "runtime/cli/tokenize_command.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/cli/json_line.h"
#include "runtime/engine/model_tokenizer.h"
#include "runtime/model/model_location.h"
#include "runtime/model/model_registry.h"
#include "runtime/tokenizer/detokenizer.h"
#include "runtime/tokenizer/open_tokenizer.h"

namespace folio {
namespace {

constexpr char kExamples[] = R"(Examples:
  folio tokenize --model my-model --input texts.jsonl
  echo '{"text": "Hello world"}' | folio tokenize --model my-model
  folio tokenize --model vocabulary.gguf --input texts.jsonl --add-bos
  echo '{"ids": [15496, 995]}' | folio tokenize --model tokenizer.json --decode

Reads a JSON object a line, {"text": ...}, and writes {"ids": [...]} for each;
with --decode the other way. Other members are ignored. The first line that is
wrong ends it, after the output for those before.)";

struct TokenizeFlags {
  std::string model;  // Empty: the model that Folio carries in itself.
  std::optional<std::string> input;  // Absent: standard input.
  EncodeOptions options;
  bool decode = false;
};

absl::StatusOr<std::unique_ptr<Tokenizer>> Open(const std::string& model) {
  const std::filesystem::path path(model);
  if (path.filename() == "tokenizer.json") {
    const std::filesystem::path folder = path.parent_path();
    return OpenHfTokenizer(
        ModelFiles::Folder(folder.empty() ? "." : folder.string()));
  }
  FOLIO_ASSIGN_OR_RETURN(const ModelLocation location, FindModel(model));
  // A tokenizer needs no model beside it.
  if (location.gguf != nullptr) return OpenGgufTokenizer(*location.gguf);
  if (location.files.has_value() && location.files->Has("tokenizer.json")) {
    return OpenHfTokenizer(*location.files);
  }
  FOLIO_ASSIGN_OR_RETURN(const ModelSource source, OpenModelSource(location));
  return OpenTokenizerOf(location, source.config);
}

absl::StatusOr<Json> EncodeLine(const Json& line, const Tokenizer& tokenizer,
                                const EncodeOptions& options) {
  if (!line.is_object() || !line.contains("text") ||
      !line["text"].is_string()) {
    return absl::InvalidArgumentError("expected {\"text\": a string}");
  }
  FOLIO_ASSIGN_OR_RETURN(
      const std::vector<TokenId> tokens,
      tokenizer.Encode(line["text"].get_ref<const std::string&>(), options));
  return Json{{"ids", tokens}};
}

absl::StatusOr<Json> DecodeLine(const Json& line, const Tokenizer& tokenizer) {
  if (!line.is_object() || !line.contains("ids") || !line["ids"].is_array()) {
    return absl::InvalidArgumentError("expected {\"ids\": a list of numbers}");
  }
  const int32_t vocab_size = tokenizer.info().vocab_size;
  std::vector<TokenId> tokens;
  for (const Json& id : line["ids"]) {
    // A number above 2^63 comes out negative.
    if (!id.is_number_integer() || id.get<int64_t>() < 0 ||
        id.get<int64_t>() >= vocab_size) {
      return absl::InvalidArgumentError(
          absl::StrCat("found ", id.dump(),
                       " among the ids; the vocabulary has "
                       "ids 0 to ",
                       vocab_size - 1));
    }
    tokens.push_back(id.get<TokenId>());
  }
  return Json{{"text", Decode(tokenizer, tokens)}};
}

absl::Status TranslateLines(std::istream& input, std::string_view name,
                            const TokenizeFlags& flags,
                            const Tokenizer& tokenizer) {
  std::string text;
  for (int64_t number = 1; std::getline(input, text); ++number) {
    const Json line =
        Json::parse(text, /*callback=*/nullptr, /*allow_exceptions=*/false);
    absl::StatusOr<Json> result =
        absl::InvalidArgumentError("the line is not valid JSON");
    if (!line.is_discarded()) {
      result = flags.decode ? DecodeLine(line, tokenizer)
                            : EncodeLine(line, tokenizer, flags.options);
    }
    if (!result.ok()) {
      return absl::Status(
          result.status().code(),
          absl::StrCat(std::string(name), ", line ", number, ": ",
                       std::string(result.status().message())));
    }
    PrintJsonLine(*result);
    if (!std::cout.good()) break;  // What went wrong is told elsewhere.
  }
  if (input.bad()) {
    return absl::UnknownError(
        absl::StrCat("reading ", std::string(name), ": ", strerror(errno)));
  }
  return absl::OkStatus();
}

absl::Status Tokenize(const TokenizeFlags& flags) {
  FOLIO_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                         Open(flags.model));
  if (!flags.input.has_value()) {
    return TranslateLines(std::cin, "standard input", flags, *tokenizer);
  }
  std::ifstream file(*flags.input);
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat("can't open '", *flags.input, "': ", strerror(errno)));
  }
  return TranslateLines(file, "'" + *flags.input + "'", flags, *tokenizer);
}

}  // namespace

void AddTokenizeCommand(CLI::App& app, CommandRun& run) {
  const auto flags = std::make_shared<TokenizeFlags>();
  CLI::App* const command =
      app.add_subcommand("tokenize", "Turns text into token ids, or back");
  command->footer(kExamples);
  command
      ->add_option(
          "--model", flags->model,
          "A model's folder, a .gguf file (one of vocabulary only too) "
          "or a tokenizer.json; the built-in model without")
      ->type_name("PATH");
  command
      ->add_option("--input", flags->input,
                   "Lines to read, instead of standard input")
      ->type_name("FILE.jsonl");
  CLI::Option* const decode =
      command->add_flag("--decode", flags->decode, "Token ids into text");
  command
      ->add_flag("--add-bos", flags->options.add_special,
                 "Add the tokens that the model wants around a text")
      ->excludes(decode);
  command
      ->add_flag("--parse-special", flags->options.parse_special,
                 "Special tokens written in the text are meant as such")
      ->excludes(decode);
  command->callback(
      [flags, &run] { run = [flags] { return Tokenize(*flags); }; });
}

}  // namespace folio
