// What sets one family of models apart from the others.

#ifndef RUNTIME_MODEL_FAMILY_H_
#define RUNTIME_MODEL_FAMILY_H_

#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/model/config_reader.h"
#include "runtime/model/decoder_config.h"
#include "runtime/model/decoder_tensors.h"

namespace folio {

// Each family has a file of its own, which defines one of these, and a row in
// the table in family.cc.
struct Family {
  // In config.json's `architectures`.
  std::string_view architecture;
  // In `random:arch=...`, and in a GGUF file's `general.architecture` where
  // read_gguf is not null.
  std::string_view short_name;

  // What all models of the family have in common, and a small size for the
  // rest.
  DecoderConfig (*defaults)();

  // Fills what the file says into the defaults.
  absl::Status (*read_hf)(const HfConfig& hf, DecoderConfig& config);
  absl::Status (*read_gguf)(const GgufConfig& gguf, DecoderConfig& config);

  DecoderNames (*hf_names)();
  DecoderNames (*gguf_names)();
};

// Every family that Folio runs.
std::span<const Family* const> Families();

// INVALID_ARGUMENT names `where`, the architecture and those that are
// supported.
absl::StatusOr<const Family*> FindHfFamily(std::string_view architecture,
                                           const std::string& where);
absl::StatusOr<const Family*> FindGgufFamily(std::string_view architecture,
                                             const std::string& where);
absl::StatusOr<const Family*> FindRandomFamily(std::string_view short_name);

// INVALID_ARGUMENT says that `where` has a value that is not supported, and
// lists those that are.
absl::Status Unsupported(const std::string& where, const std::string& found,
                         const std::string& supported);

}  // namespace folio

#endif  // RUNTIME_MODEL_FAMILY_H_
