// A model of any source as a GGUF file.

#ifndef RUNTIME_MODEL_GGUF_EXPORT_H_
#define RUNTIME_MODEL_GGUF_EXPORT_H_

#include <string>

#include "absl/status/status.h"
#include "runtime/model/model_registry.h"
#include "runtime/weights/tensor_table.h"

namespace folio {

// The type that is called bf16, f32, q8_0 or q4_0. INVALID_ARGUMENT names those
// for any other.
absl::StatusOr<DType> FindGgufExportType(const std::string& name);

// Writes the model for llama.cpp to read: matrices and embeddings in `type`,
// norms in F32, rows of q and k with the two of each rotary pair side by side.
// There is no vocabulary in the file: it is for comparing speed and logits, by
// token ids. Needs memory for a few rows at a time.
//
// INVALID_ARGUMENT, naming what was found, for what llama.cpp's plain llama
// does not have: another family, biases, scaled or windowed positions; and for
// rows that are not whole blocks of `type`. Else the status of writing.
absl::Status ExportGguf(const ModelSource& source, DType type,
                        const std::string& path);

}  // namespace folio

#endif  // RUNTIME_MODEL_GGUF_EXPORT_H_
