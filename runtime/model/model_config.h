// From a model's files to its configuration.

#ifndef RUNTIME_MODEL_MODEL_CONFIG_H_
#define RUNTIME_MODEL_MODEL_CONFIG_H_

#include "absl/status/statusor.h"
#include "runtime/model/decoder_config.h"
#include "runtime/model/family.h"
#include "runtime/weights/gguf.h"
#include "runtime/weights/model_files.h"

namespace folio {

// The config is valid; tensors have not been looked at, but for what a GGUF
// file says by having one.
struct FamilyConfig {
  const Family* family = nullptr;
  DecoderConfig config;
};

// Reads config.json, and the EOS tokens of generation_config.json.
// INVALID_ARGUMENT names the file, the key, what was found and what is expected
// or supported; or a status of reading a file.
absl::StatusOr<FamilyConfig> ReadHfModelConfig(const ModelFiles& files);

// The same of a GGUF file's metadata. INVALID_ARGUMENT for a file of vocabulary
// only.
absl::StatusOr<FamilyConfig> ReadGgufModelConfig(const GgufFile& file);

}  // namespace folio

#endif  // RUNTIME_MODEL_MODEL_CONFIG_H_
