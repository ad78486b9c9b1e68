// A value in a JSON file, together with its place there.

#ifndef RUNTIME_TOKENIZER_JSON_PLACE_H_
#define RUNTIME_TOKENIZER_JSON_PLACE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace folio {

// Points to a value that must outlive it. All errors are INVALID_ARGUMENT, and
// begin with the file and the way to the value, "'f.json': model.vocab: ".
class JsonPlace {
 public:
  // The document of the file `path`.
  JsonPlace(const nlohmann::json& document, std::string path)
      : value_(&document), path_(std::move(path)) {}

  const nlohmann::json& value() const { return *value_; }
  absl::Status Error(std::string_view what) const;

  // Checked access: an error says what was found and what is expected.
  absl::StatusOr<std::string> String() const;
  absl::StatusOr<bool> Bool() const;
  absl::StatusOr<int64_t> Integer() const;
  absl::Status ExpectObject() const;
  absl::Status ExpectList() const;
  absl::StatusOr<std::vector<JsonPlace>> Elements() const;

  // A member of an object. Get fails when there is none; for Find, a member
  // that is null is none.
  absl::StatusOr<JsonPlace> Get(std::string_view key) const;
  absl::StatusOr<std::optional<JsonPlace>> Find(std::string_view key) const;
  absl::StatusOr<std::string> StringAt(std::string_view key) const;
  absl::StatusOr<bool> BoolAt(std::string_view key, bool otherwise) const;

 private:
  JsonPlace At(const nlohmann::json& value, std::string_view step) const;
  absl::Status Unexpected(std::string_view expected) const;

  const nlohmann::json* value_;
  std::string path_;
  std::string way_;  // Empty for the document.
};

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_JSON_PLACE_H_
