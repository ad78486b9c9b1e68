// The model that Folio carries in itself, for a first try without files.

#ifndef RUNTIME_MODEL_EMBEDDED_MODEL_H_
#define RUNTIME_MODEL_EMBEDDED_MODEL_H_

#include "runtime/weights/model_files.h"

namespace folio {

inline constexpr char kEmbeddedModelName[] = "folio-tiny";

// The files of runtime/model/folio_tiny/, which the program has in its
// read-only data: a small Llama, trained on the King James Bible by train.py
// beside them, with a tokenizer of its own.
ModelFiles EmbeddedModelFiles();

}  // namespace folio

#endif  // RUNTIME_MODEL_EMBEDDED_MODEL_H_
