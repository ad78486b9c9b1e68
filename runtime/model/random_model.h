// Models with random weights, of any family and size, made in memory.

#ifndef RUNTIME_MODEL_RANDOM_MODEL_H_
#define RUNTIME_MODEL_RANDOM_MODEL_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/model/decoder_config.h"
#include "runtime/model/family.h"

namespace folio {

struct RandomModel {
  const Family* family = nullptr;
  DecoderConfig config;
  uint64_t seed = 1;
};

// `text` is a list of key=value, separated by commas; a later one of the same
// key wins. Keys are arch (a family's short name; tiny), vocab, hidden, heads,
// kv_heads, head_dim, layers, ffn, context, window, tied (1: the head is the
// token embedding) and seed, each with a default of the family (kv_heads: as
// many as heads, where those are given; ffn: in proportion to hidden, where
// that is). The first item may be the name of a preset instead, llama-135m or
// llama-1b, which stands for a list of its own: "llama-135m,layers=2".
// INVALID_ARGUMENT says what was found and what is expected. The config is
// valid, and its parameters are few enough to be computed with.
absl::StatusOr<RandomModel> ParseRandomModel(const std::string& text);

}  // namespace folio

#endif  // RUNTIME_MODEL_RANDOM_MODEL_H_
