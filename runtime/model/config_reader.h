// Keys of a model's configuration, read with suspicion.

#ifndef RUNTIME_MODEL_CONFIG_READER_H_
#define RUNTIME_MODEL_CONFIG_READER_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/types.h"
#include "runtime/weights/gguf.h"

namespace folio {

// A config.json, or an object inside it. INVALID_ARGUMENT names the file, the
// key, what was found and what is expected.
class HfConfig {
 public:
  // `path` is what messages call the file. REQUIRES: `config` is an object.
  HfConfig(nlohmann::json config, std::string path)
      : config_(std::move(config)), path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  // Whether the key is there and not null.
  bool Has(const std::string& key) const;

  // Whether it is there, be it null.
  bool Mentions(const std::string& key) const { return config_.contains(key); }

  // Reads a key that must be there.
  absl::Status Read(const std::string& key, int32_t& value) const;
  absl::Status Read(const std::string& key, double& value) const;
  absl::Status Read(const std::string& key, bool& value) const;
  absl::Status Read(const std::string& key, std::string& value) const;
  absl::Status Read(const std::string& key,
                    std::vector<std::string>& value) const;
  // A number or a list of numbers.
  absl::Status Read(const std::string& key, std::vector<TokenId>& value) const;

  // Leaves `value` alone when the key is missing or null.
  template <typename T>
  absl::Status ReadOptional(const std::string& key, T& value) const {
    return Has(key) ? Read(key, value) : absl::OkStatus();
  }
  template <typename T>
  absl::Status ReadOptional(const std::string& key,
                            std::optional<T>& value) const {
    return Has(key) ? Read(key, value.emplace()) : absl::OkStatus();
  }

  // An object inside. REQUIRES: Has(key).
  absl::StatusOr<HfConfig> Inside(const std::string& key) const;

  // "'path': key", what every message begins with.
  std::string Where(const std::string& key) const;

 private:
  absl::StatusOr<nlohmann::json> Find(const std::string& key) const;
  absl::Status Unexpected(const std::string& key, const nlohmann::json& found,
                          std::string_view expected) const;

  nlohmann::json config_;
  std::string path_;
  std::string inside_;  // The keys of the objects around, with a dot each.
};

// The keys `prefix.*` of a GGUF file, where models have their architecture for
// a prefix. Errors as HfConfig's.
class GgufConfig {
 public:
  // `file` must outlive the config.
  GgufConfig(const GgufFile* file, std::string prefix)
      : file_(file), prefix_(std::move(prefix)) {}

  bool Has(std::string_view key) const { return file_->Has(Full(key)); }
  absl::Status Read(std::string_view key, int32_t& value) const;
  absl::Status Read(std::string_view key, double& value) const;
  absl::Status Read(std::string_view key, std::string& value) const;
  template <typename T>
  absl::Status ReadOptional(std::string_view key, T& value) const {
    return Has(key) ? Read(key, value) : absl::OkStatus();
  }

  std::string Where(std::string_view key) const;

 private:
  std::string Full(std::string_view key) const {
    return prefix_ + "." + std::string(key);
  }
  absl::Status CheckHas(std::string_view key) const;

  const GgufFile* file_;
  std::string prefix_;
};

}  // namespace folio

#endif  // RUNTIME_MODEL_CONFIG_READER_H_
