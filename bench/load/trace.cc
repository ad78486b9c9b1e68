#include "bench/load/trace.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/json_file.h"
#include "runtime/weights/mapped_file.h"

namespace folio {
namespace {

using Json = nlohmann::json;

constexpr const char* kFields[] = {
    "arrival_s",   "prompt_tokens", "output_tokens", "token_seed", "prompt",
    "prefix_seed", "prefix_tokens", "tenant",        "priority",   "n",
    "deadline_s",  "cancel_s",      "read_delay_s",  "previous",   "think_s"};

// 11 days. Up to here a double tells the quarters of a nanosecond apart that a
// Duration consists of.
constexpr int64_t kMaxSeconds = 1000000;

// A long line would hide what is said of it.
std::string Shortened(std::string_view text) {
  constexpr size_t kMost = 200;
  if (text.size() <= kMost) return std::string(text);
  size_t size = kMost;
  const auto continues_character = [&] { return (text[size] & 0xC0) == 0x80; };
  while (size > 0 && continues_character()) --size;
  return absl::StrCat(std::string(text.substr(0, size)), "...");
}

// What the lines above were.
struct LinesAbove {
  std::vector<LoadRequest> requests;
  std::vector<bool> continued;  // Whether a later turn goes on from it.
};

// One line of a trace. `place` is where it stands, for messages.
class LineReader {
 public:
  LineReader(std::string place, const Json& object)
      : place_(std::move(place)), object_(object) {}

  absl::StatusOr<LoadRequest> Read(const LinesAbove& above) const {
    FOLIO_RETURN_IF_ERROR(CheckNames());
    LoadRequest request;
    FOLIO_RETURN_IF_ERROR(ReadSeconds("arrival_s", request.arrival));
    FOLIO_RETURN_IF_ERROR(ReadPrompt(request));
    FOLIO_RETURN_IF_ERROR(ReadWhole<int32_t>("output_tokens", 1, kMaxTokens,
                                             request.output_tokens));
    FOLIO_RETURN_IF_ERROR(ReadText("tenant", request.tenant));
    FOLIO_RETURN_IF_ERROR(
        ReadWhole<int32_t>("priority", INT32_MIN, INT32_MAX, request.priority));
    FOLIO_RETURN_IF_ERROR(ReadWhole<int32_t>("n", 1, INT32_MAX, request.n));
    FOLIO_RETURN_IF_ERROR(ReadSeconds("deadline_s", request.deadline));
    FOLIO_RETURN_IF_ERROR(ReadSeconds("cancel_s", request.cancel_after));
    FOLIO_RETURN_IF_ERROR(ReadSeconds("read_delay_s", request.read_delay));
    FOLIO_RETURN_IF_ERROR(
        ReadWhole<int32_t>("previous", 0, INT32_MAX, request.previous));
    FOLIO_RETURN_IF_ERROR(ReadSeconds("think_s", request.think_time));
    FOLIO_RETURN_IF_ERROR(CheckTurn(request, above));
    return request;
  }

 private:
  bool Has(const char* field) const { return object_.contains(field); }

  // A field that is misspelt must not count as one that is left out.
  absl::Status CheckNames() const {
    for (const auto& [name, value] : object_.items()) {
      if (std::ranges::find(kFields, name) == std::end(kFields)) {
        return Error(absl::StrCat("there is a field \"", Shortened(name),
                                  "\"; the fields of a trace are ",
                                  absl::StrJoin(kFields, ", ")));
      }
    }
    const std::pair<const char*, bool> needed[] = {
        {"arrival_s", !Has("previous")},
        {"prompt_tokens", !Has("prompt")},
        {"output_tokens", true},
        {"token_seed", !Has("prompt")}};
    for (const auto& [field, is_needed] : needed) {
      if (!is_needed || Has(field)) continue;
      return Error(absl::StrCat(
          field,
          " is missing; each line needs arrival_s (or previous), "
          "prompt_tokens and token_seed (or prompt), and output_tokens"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadPrompt(LoadRequest& request) const {
    FOLIO_RETURN_IF_ERROR(ReadText("prompt", request.prompt_text));
    FOLIO_RETURN_IF_ERROR(ReadWhole<int32_t>("prompt_tokens", 1, kMaxTokens,
                                             request.prompt_tokens));
    FOLIO_RETURN_IF_ERROR(
        ReadWhole<uint64_t>("token_seed", 0, UINT64_MAX, request.token_seed));
    FOLIO_RETURN_IF_ERROR(ReadWhole<int32_t>("prefix_tokens", 0, kMaxTokens,
                                             request.prefix_tokens));
    FOLIO_RETURN_IF_ERROR(
        ReadWhole<uint64_t>("prefix_seed", 0, UINT64_MAX, request.prefix_seed));
    if (Has("prompt") && request.prefix_tokens > 0) {
      return FieldError("prefix_tokens", "0 or absent where there is a prompt");
    }
    return absl::OkStatus();
  }

  absl::Status CheckTurn(const LoadRequest& request,
                         const LinesAbove& above) const {
    if (!request.previous.has_value()) {
      if (!Has("think_s")) return absl::OkStatus();
      return FieldError("think_s", "absent where there is no previous");
    }
    const auto previous = static_cast<size_t>(*request.previous);
    if (previous >= above.requests.size()) {
      return FieldError("previous",
                        absl::StrCat("the number of a request above this one, "
                                     "which is number ",
                                     above.requests.size(), " (from 0)"));
    }
    if (above.continued[previous]) {
      return FieldError("previous",
                        "a request that no line above goes on from");
    }
    if (above.requests[previous].prompt_text.empty() !=
        request.prompt_text.empty()) {
      return FieldError("previous",
                        "a request whose prompt is of the same kind, tokens or "
                        "a text, as this one's");
    }
    return absl::OkStatus();
  }

  // These leave `value` as it is when there is no such field.

  template <typename DurationOrOptional>
  absl::Status ReadSeconds(const char* field, DurationOrOptional& value) const {
    if (!Has(field)) return absl::OkStatus();
    const Json& found = object_[field];
    if (!found.is_number() || !(found.get<double>() >= 0) ||
        !(found.get<double>() <= kMaxSeconds)) {
      return FieldError(
          field, absl::StrCat("a number of seconds from 0 to ", kMaxSeconds));
    }
    value = absl::Seconds(found.get<double>());
    return absl::OkStatus();
  }

  template <typename T, typename TOrOptional>
  absl::Status ReadWhole(const char* field, T least, T most,
                         TOrOptional& value) const {
    if (!Has(field)) return absl::OkStatus();
    const Json& found = object_[field];
    const bool fits = found.is_number_unsigned()
                          ? std::in_range<T>(found.get<uint64_t>())
                          : found.is_number_integer() &&
                                std::in_range<T>(found.get<int64_t>());
    if (!fits || found.get<T>() < least || found.get<T>() > most) {
      return FieldError(
          field, absl::StrCat("a whole number from ", least, " to ", most));
    }
    value = found.get<T>();
    return absl::OkStatus();
  }

  absl::Status ReadText(const char* field, std::string& value) const {
    if (!Has(field)) return absl::OkStatus();
    const Json& found = object_[field];
    if (!found.is_string() || found.get_ref<const std::string&>().empty()) {
      return FieldError(field, "a text that is not empty");
    }
    value = found.get<std::string>();
    return absl::OkStatus();
  }

  absl::Status FieldError(const char* field, std::string_view allowed) const {
    return Error(absl::StrCat(field, " is ", Shortened(object_[field].dump()),
                              "; it must be ", std::string(allowed)));
  }

  absl::Status Error(std::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(place_, ": ", std::string(what)));
  }

  const std::string place_;
  const Json& object_;
};

// One line of WriteTrace. Leaves out what ParseTrace takes for granted.
class LineWriter {
 public:
  explicit LineWriter(const LoadRequest& request) {
    const LoadRequest absent;
    const bool is_text = !request.prompt_text.empty();
    if (!request.previous.has_value() || request.arrival != absent.arrival) {
      Seconds("arrival_s", request.arrival);
    }
    if (is_text) line_["prompt"] = request.prompt_text;
    if (!is_text || request.prompt_tokens != absent.prompt_tokens) {
      line_["prompt_tokens"] = request.prompt_tokens;
    }
    line_["output_tokens"] = request.output_tokens;
    if (!is_text || request.token_seed != absent.token_seed) {
      line_["token_seed"] = request.token_seed;
    }
    Unless(absent.prefix_tokens, "prefix_tokens", request.prefix_tokens);
    Unless(absent.prefix_seed, "prefix_seed", request.prefix_seed);
    Unless(absent.tenant, "tenant", request.tenant);
    Unless(absent.priority, "priority", request.priority);
    Unless(absent.n, "n", request.n);
    if (request.deadline) Seconds("deadline_s", *request.deadline);
    if (request.cancel_after) Seconds("cancel_s", *request.cancel_after);
    if (request.read_delay != absent.read_delay) {
      Seconds("read_delay_s", request.read_delay);
    }
    if (request.previous) line_["previous"] = *request.previous;
    if (request.think_time != absent.think_time) {
      Seconds("think_s", request.think_time);
    }
  }

  std::string Text() const { return line_.dump() + "\n"; }

 private:
  template <typename T>
  void Unless(const T& absent, const char* field, const T& value) {
    if (value != absent) line_[field] = value;
  }

  void Seconds(const char* field, absl::Duration duration) {
    line_[field] = absl::ToDoubleSeconds(duration);
  }

  nlohmann::ordered_json line_;
};

}  // namespace

absl::StatusOr<std::vector<LoadRequest>> ReadTrace(const std::string& path) {
  FOLIO_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file,
                         MappedFile::Open(path));
  return ParseTrace(file->text(), path);
}

absl::StatusOr<std::vector<LoadRequest>> ParseTrace(std::string_view text,
                                                    std::string_view name) {
  LinesAbove lines;
  int line_number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ++line_number;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const std::string place = absl::StrCat(std::string(name), ":", line_number);
    const absl::StatusOr<Json> object = ParseJson(line, place);
    if (!object.ok() || !object->is_object()) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, ": this is not a JSON object: ", Shortened(line),
                       "; a trace has one object a line"));
    }
    FOLIO_ASSIGN_OR_RETURN(LoadRequest request,
                           LineReader(place, *object).Read(lines));
    if (request.previous.has_value()) lines.continued[*request.previous] = true;
    lines.requests.push_back(std::move(request));
    lines.continued.push_back(false);
  }
  if (lines.requests.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(name),
                     ": there is no request in it; a trace "
                     "has one JSON object a line"));
  }
  return std::move(lines.requests);
}

std::string WriteTrace(std::span<const LoadRequest> load) {
  std::string text;
  for (const LoadRequest& request : load) text += LineWriter(request).Text();
  return text;
}

}  // namespace folio
