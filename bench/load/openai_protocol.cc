#include "bench/load/openai_protocol.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "runtime/weights/json_file.h"
#include "runtime/weights/shown.h"

namespace folio {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxMessageBytes = 300;

// Nothing where `object` is no object, or has no such value.
const Json* Find(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

const std::string* FindString(const Json& object, const char* key) {
  const Json* const value = Find(object, key);
  return value == nullptr ? nullptr : value->get_ptr<const std::string*>();
}

std::optional<int32_t> FindCount(const Json& object, const char* key) {
  const Json* const value = Find(object, key);
  if (value == nullptr || !value->is_number_integer()) return std::nullopt;
  const int64_t count = value->get<int64_t>();
  if (count < 0 || count > std::numeric_limits<int32_t>::max()) {
    return std::nullopt;
  }
  return static_cast<int32_t>(count);
}

// Null for what is none, or is nested as nothing honest is.
Json Parsed(std::string_view text) {
  return ParseJson(text, "the server's answer").value_or(Json());
}

struct ServerError {
  std::optional<int32_t> code;
  std::string message;
};

ServerError ToServerError(const Json& error) {
  const std::string* message = error.get_ptr<const std::string*>();
  if (message == nullptr) message = FindString(error, "message");
  return {.code = FindCount(error, "code"),
          .message = message == nullptr ? error.dump() : *message};
}

// {"error": {"message", "code"}}, {"error": "message"}, or, from older vLLM,
// {"object": "error", "message", "code"}.
std::optional<ServerError> FindError(const Json& json) {
  if (const Json* const error = Find(json, "error");
      error != nullptr && !error->is_null()) {
    return ToServerError(*error);
  }
  const std::string* const object = FindString(json, "object");
  if (object != nullptr && *object == "error") return ToServerError(json);
  return std::nullopt;
}

absl::StatusCode CodeOfHttp(int http) {
  switch (http) {
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 429:
      return absl::StatusCode::kResourceExhausted;
    case 503:
      return absl::StatusCode::kUnavailable;
    default:
      return http >= 400 && http < 500 ? absl::StatusCode::kInvalidArgument
                                       : absl::StatusCode::kInternal;
  }
}

// What is worth repeating of the body of an error.
std::string MessageIn(std::string_view body) {
  const Json json = Parsed(body);
  if (const std::optional<ServerError> error = FindError(json)) {
    return error->message;
  }
  for (const char* const key : {"message", "detail"}) {
    if (const std::string* const text = FindString(json, key)) return *text;
  }
  return std::string(body);
}

std::string ServerName(const Json& model, std::string_view header) {
  const std::string* const owner = FindString(model, "owned_by");
  if (owner == nullptr || owner->empty()) return Printable(header);
  if (*owner == "llamacpp") return "llama.cpp";
  if (*owner == "vllm") return "vLLM";
  return Printable(*owner);
}

}  // namespace

std::string CompletionBody(const TargetRequest& request,
                           std::string_view model) {
  Json body = {{"max_tokens", request.max_tokens},
               {"temperature", 0},
               {"stream", true},
               {"stream_options", {{"include_usage", true}}},
               {"ignore_eos", true}};
  std::visit([&body](const auto& prompt) { body["prompt"] = prompt; },
             request.prompt);
  if (!model.empty()) body["model"] = model;
  if (request.n > 1) body["n"] = request.n;
  if (!request.tenant.empty()) body["user"] = request.tenant;
  if (request.priority != 0) body["priority"] = request.priority;
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<CompletionChunk> ParseCompletionChunk(std::string_view data) {
  const Json json = Parsed(data);
  if (!json.is_object()) {
    return absl::InternalError(absl::StrCat(
        "the server sent a message that is no JSON object: ", Shown(data)));
  }
  if (const std::optional<ServerError> error = FindError(json)) {
    const int code = error->code.value_or(500);
    return absl::Status(
        CodeOfHttp(code),
        absl::StrCat("the server broke off with error ", code, ": ",
                     Printable(error->message, kMaxMessageBytes)));
  }
  CompletionChunk chunk;
  if (const Json* const choices = Find(json, "choices")) {
    for (const Json& choice : *choices) {
      const std::string* const text = FindString(choice, "text");
      const Json* const finish_reason = Find(choice, "finish_reason");
      chunk.choices.push_back(
          {.sample = FindCount(choice, "index").value_or(0),
           .text = text == nullptr ? "" : *text,
           .is_last = finish_reason != nullptr && !finish_reason->is_null()});
    }
  }
  if (const Json* const usage = Find(json, "usage");
      usage != nullptr && usage->is_object()) {
    chunk.usage = {.prompt_tokens = FindCount(*usage, "prompt_tokens"),
                   .completion_tokens = FindCount(*usage, "completion_tokens")};
  }
  return chunk;
}

absl::Status StatusOfHttp(int http, std::string_view body) {
  return absl::Status(
      CodeOfHttp(http),
      absl::StrCat("HTTP ", http, body.empty() ? "" : ": ",
                   Printable(MessageIn(body), kMaxMessageBytes)));
}

absl::StatusOr<TargetInfo> ParseModels(std::string_view body,
                                       std::string_view model,
                                       std::string_view header) {
  const Json json = Parsed(body);
  const Json* const models = Find(json, "data");
  if (models == nullptr || !models->is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat("it is no list of models: ", Shown(body)));
  }
  const auto is_wanted = [model](const Json& entry) {
    const std::string* const id = FindString(entry, "id");
    return id != nullptr && (model.empty() || *id == model);
  };
  TargetInfo info = {.server = Printable(header), .model = std::string(model)};
  const auto found = std::ranges::find_if(*models, is_wanted);
  if (found == models->end()) return info;
  info.server = ServerName(*found, header);
  info.model = *FindString(*found, "id");
  info.context_length = FindCount(*found, "max_model_len");
  if (const Json* const meta = Find(*found, "meta")) {
    info.vocab_size = FindCount(*meta, "n_vocab");
    info.context_length = FindCount(*meta, "n_ctx_train");
  }
  return info;
}

void UsageCount::Add(const CompletionChunk& chunk) {
  if (!chunk.usage.has_value()) return;
  if (chunk.usage->prompt_tokens.has_value()) {
    prompt_tokens_ = chunk.usage->prompt_tokens;
  }
  if (!chunk.usage->completion_tokens.has_value()) return;
  if (chunk.choices.size() != 1) {
    all_ = chunk.usage->completion_tokens;
    return;
  }
  const size_t sample = chunk.choices.front().sample;
  if (sample >= of_samples_.size()) of_samples_.resize(sample + 1);
  of_samples_[sample] = *chunk.usage->completion_tokens;
}

std::optional<int32_t> UsageCount::completion_tokens() const {
  if (all_.has_value() || of_samples_.empty()) return all_;
  const int64_t sum =
      std::accumulate(of_samples_.begin(), of_samples_.end(), int64_t{0});
  if (sum > std::numeric_limits<int32_t>::max()) return std::nullopt;
  return static_cast<int32_t>(sum);
}

}  // namespace folio
