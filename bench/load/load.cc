#include "bench/load/load.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numbers>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/philox.h"
#include "runtime/base/status_macros.h"

namespace folio {
namespace {

using Json = nlohmann::json;

constexpr const char* kFields[] = {"arrival_s", "prompt_tokens",
                                   "output_tokens", "token_seed"};
constexpr double kMaxArrivalSeconds = 1e7;  // 115 days.

absl::Status FieldError(std::string_view place, const char* field,
                        const Json& found, std::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(place), ": ", field, " is ", found.dump(),
                   "; it must be ", std::string(allowed)));
}

// One line of a trace. `place` is where it stands, for messages.
class LineReader {
 public:
  LineReader(std::string place, const Json& object)
      : place_(std::move(place)), object_(object) {}

  absl::StatusOr<LoadRequest> Read() {
    FOLIO_RETURN_IF_ERROR(CheckNames());
    LoadRequest request;
    FOLIO_RETURN_IF_ERROR(ReadArrival(request.arrival));
    FOLIO_RETURN_IF_ERROR(ReadCount("prompt_tokens", request.prompt_tokens));
    FOLIO_RETURN_IF_ERROR(ReadCount("output_tokens", request.output_tokens));
    FOLIO_RETURN_IF_ERROR(ReadSeed(request.token_seed));
    return request;
  }

 private:
  // A field that is misspelt must not count as one that is left out.
  absl::Status CheckNames() const {
    const std::string known = absl::StrJoin(kFields, ", ");
    for (const auto& [name, value] : object_.items()) {
      if (std::ranges::find(kFields, name) == std::end(kFields)) {
        return absl::InvalidArgumentError(
            absl::StrCat(place_, ": there is a field \"", name,
                         "\"; the fields of a trace are ", known));
      }
    }
    for (const char* field : kFields) {
      if (!object_.contains(field)) {
        return absl::InvalidArgumentError(absl::StrCat(
            place_, ": ", field, " is missing; each line needs ", known));
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadArrival(absl::Duration& arrival) const {
    const Json& value = object_["arrival_s"];
    if (!value.is_number() || !(value.get<double>() >= 0) ||
        value.get<double>() > kMaxArrivalSeconds) {
      return FieldError(
          place_, "arrival_s", value,
          absl::StrCat("a number of seconds from 0 to ", kMaxArrivalSeconds));
    }
    arrival = absl::Seconds(value.get<double>());
    return absl::OkStatus();
  }

  absl::Status ReadCount(const char* field, int32_t& count) const {
    const Json& value = object_[field];
    if (!value.is_number_unsigned() || value.get<uint64_t>() < 1 ||
        value.get<uint64_t>() > INT32_MAX) {
      return FieldError(place_, field, value,
                        absl::StrCat("a whole number from 1 to ", INT32_MAX));
    }
    count = value.get<int32_t>();
    return absl::OkStatus();
  }

  absl::Status ReadSeed(uint64_t& seed) const {
    const Json& value = object_["token_seed"];
    if (!value.is_number_unsigned()) {
      return FieldError(place_, "token_seed", value,
                        absl::StrCat("a whole number from 0 to ", UINT64_MAX));
    }
    seed = value.get<uint64_t>();
    return absl::OkStatus();
  }

  const std::string place_;
  const Json& object_;
};

// Box and Muller; draws 2 * index and 2 * index + 1 of the stream.
double StandardNormal(uint64_t seed, uint64_t stream, uint64_t index) {
  const double u = 1.0 - UniformDouble(seed, stream, 2 * index);  // (0, 1]
  const double v = UniformDouble(seed, stream, 2 * index + 1);
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

int32_t DrawLength(const LogNormalLength& length, double normal) {
  const double tokens = length.median * std::exp(length.sigma * normal);
  return static_cast<int32_t>(
      std::clamp(std::round(tokens), 1.0, static_cast<double>(length.most)));
}

}  // namespace

absl::StatusOr<std::vector<LoadRequest>> ReadTrace(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return absl::NotFoundError(absl::StrCat(
        "the trace '", path, "' can't be opened; check that it exists"));
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return ParseTrace(text, path);
}

absl::StatusOr<std::vector<LoadRequest>> ParseTrace(std::string_view text,
                                                    std::string_view name) {
  std::vector<LoadRequest> requests;
  int line_number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ++line_number;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const std::string place = absl::StrCat(std::string(name), ":", line_number);
    const Json object =
        Json::parse(line, /*cb=*/nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) {
      return absl::InvalidArgumentError(absl::StrCat(
          place, ": this is not a JSON object: ", std::string(line),
          "; a trace has one object a line"));
    }
    FOLIO_ASSIGN_OR_RETURN(const LoadRequest request,
                           LineReader(place, object).Read());
    requests.push_back(request);
  }
  if (requests.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(name),
                     ": there is no request in it; a trace "
                     "has one JSON object a line"));
  }
  return requests;
}

std::vector<LoadRequest> MakeChat(const ChatLoad& load) {
  enum Stream : uint64_t { kPrompt, kOutput, kArrival };
  std::vector<LoadRequest> requests;
  absl::Duration arrival;
  for (int32_t i = 0; i < load.count; ++i) {
    const bool is_long =
        load.long_prompt_every > 0 && (i + 1) % load.long_prompt_every == 0;
    requests.push_back(
        {.arrival = arrival,
         .prompt_tokens =
             is_long ? load.long_prompt_tokens
                     : DrawLength(load.prompt,
                                  StandardNormal(load.seed, kPrompt, i)),
         .output_tokens =
             DrawLength(load.output, StandardNormal(load.seed, kOutput, i)),
         .token_seed = (load.seed << 32) + static_cast<uint64_t>(i)});
    if (load.arrivals_per_second > 0) {
      const double u = 1.0 - UniformDouble(load.seed, kArrival, i);  // (0, 1]
      arrival += absl::Seconds(-std::log(u) / load.arrivals_per_second);
    }
  }
  return requests;
}

std::vector<TokenId> RandomTokens(uint64_t seed, int32_t count,
                                  int32_t vocab_size) {
  std::vector<TokenId> tokens(count);
  for (int32_t i = 0; i < count; ++i) {
    tokens[i] =
        static_cast<TokenId>(UniformDouble(seed, /*stream=*/0, i) * vocab_size);
  }
  return tokens;
}

Request ToRequest(const LoadRequest& load, int32_t vocab_size) {
  Request request;
  request.prompt =
      RandomTokens(load.token_seed, load.prompt_tokens, vocab_size);
  request.max_tokens = load.output_tokens;
  request.ignore_eos = true;
  return request;
}

}  // namespace folio
