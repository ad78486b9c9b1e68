// JSON from outside, read with suspicion.

#ifndef RUNTIME_WEIGHTS_JSON_FILE_H_
#define RUNTIME_WEIGHTS_JSON_FILE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/weights/mapped_file.h"

namespace folio {

// Far above any tokenizer.json.
inline constexpr int64_t kMaxJsonFileBytes = int64_t{256} << 20;

// Arrays and objects inside one another. Files of models use about six levels.
inline constexpr int kMaxJsonDepth = 64;

// Parses one JSON document. INVALID_ARGUMENT for bad syntax (with the place),
// for a key that an object has twice (readers would differ in which one
// counts), and for nesting beyond kMaxJsonDepth. Messages begin with `name`,
// which says what the text is. Throws nothing.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text,
                                         std::string_view name);

// The same for a file of at most kMaxJsonFileBytes, whose path is the name.
absl::StatusOr<nlohmann::json> ParseJson(const MappedFile& file);

// Reads and parses a file of at most kMaxJsonFileBytes. Statuses are those of
// MappedFile::Open and ParseJson, and name the file.
absl::StatusOr<nlohmann::json> ReadJsonFile(const std::string& path);

// A value as a message shows it: JSON in ASCII, of which only the first 80
// characters, and then "...".
std::string ShownJson(const nlohmann::json& value);

}  // namespace folio

#endif  // RUNTIME_WEIGHTS_JSON_FILE_H_
