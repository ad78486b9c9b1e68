// From what a user writes after --model to where the model is.

#ifndef RUNTIME_MODEL_MODEL_LOCATION_H_
#define RUNTIME_MODEL_MODEL_LOCATION_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/weights/gguf.h"
#include "runtime/weights/model_files.h"

namespace folio {

// One of the three is set.
struct ModelLocation {
  std::string name;                 // What clients may put into `model`.
  std::optional<ModelFiles> files;  // In the Hugging Face layout.
  std::shared_ptr<const GgufFile> gguf;
  std::optional<std::string> random;  // What follows `random:`.
};

// `spec` is one of
//
//   (empty)                     the model that Folio carries in itself
//   random:arch=llama,layers=2  random weights; see random_model.h
//   a file                      GGUF
//   a folder                    in the Hugging Face layout: config.json,
//                               *.safetensors, tokenizer.json
//
// INVALID_ARGUMENT, or the status of reading a file, says what was found and
// what is supported.
absl::StatusOr<ModelLocation> FindModel(const std::string& spec);

}  // namespace folio

#endif  // RUNTIME_MODEL_MODEL_LOCATION_H_
