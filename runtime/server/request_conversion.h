// From what a client sent to what the engine takes.

#ifndef RUNTIME_SERVER_REQUEST_CONVERSION_H_
#define RUNTIME_SERVER_REQUEST_CONVERSION_H_

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "folio/v1/generation.pb.h"
#include "runtime/engine/engine.h"
#include "runtime/tokenizer/tokenizer.h"
#include "scheduler/request.h"

namespace folio {

// The longest `request_id`, in bytes: every response repeats it.
inline constexpr size_t kMaxRequestIdBytes = 256;

// Of `sampling.bad_words`, each of which is encoded twice.
inline constexpr int kMaxBadWords = 256;
inline constexpr size_t kMaxBadWordBytes = 256;

// Checks what only the edge knows, and encodes text; Engine::Prepare checks the
// rest. The result has no id and no deadline yet. INVALID_ARGUMENT names the
// field, NOT_FOUND the model that is served.
absl::StatusOr<Request> RequestFromProto(const v1::GenerateRequest& proto,
                                         const ModelInfo& model,
                                         const Tokenizer& tokenizer);

// INVALID_ARGUMENT as a FieldError of the field that it is about; other errors
// as they are.
absl::Status OfField(std::string_view field, const absl::Status& status);

}  // namespace folio

#endif  // RUNTIME_SERVER_REQUEST_CONVERSION_H_
