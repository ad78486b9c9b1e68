// What tokenizer.json merges with: its `model`.

#ifndef RUNTIME_TOKENIZER_HF_MODEL_H_
#define RUNTIME_TOKENIZER_HF_MODEL_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/tokenizer/bpe_model.h"
#include "runtime/tokenizer/hf_vocabulary.h"
#include "runtime/tokenizer/json_place.h"

namespace folio {

struct HfModel {
  std::unique_ptr<const BpeModel> model;
  int32_t num_merges = 0;
  bool byte_fallback = false;
};

// The model must be BPE; `root` is the whole document. With `byte_level`, its
// texts are in GPT-2's alphabet.
absl::StatusOr<HfModel> ReadHfModel(const JsonPlace& root,
                                    const HfVocabulary& vocabulary,
                                    bool byte_level);

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_HF_MODEL_H_
