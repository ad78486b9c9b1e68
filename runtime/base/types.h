// The small numeric types that every part of Folio shares.

#ifndef RUNTIME_BASE_TYPES_H_
#define RUNTIME_BASE_TYPES_H_

#include <cstdint>

namespace folio {

// A vocabulary entry. Valid ids are in [0, vocab_size).
using TokenId = int32_t;

// Names a request inside one engine. The engine draws them from a counter, so
// they are never reused; a client's own `request_id` string stays at the edge.
enum class RequestId : uint64_t {};

// Names one sequence of a request. Drawn from a counter by the scheduler.
enum class SequenceId : uint64_t {};

}  // namespace folio

#endif  // RUNTIME_BASE_TYPES_H_
