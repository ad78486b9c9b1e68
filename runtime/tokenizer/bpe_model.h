// Byte pair encoding of one piece of text.

#ifndef RUNTIME_TOKENIZER_BPE_MODEL_H_
#define RUNTIME_TOKENIZER_BPE_MODEL_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "runtime/base/types.h"
#include "runtime/tokenizer/bpe_merger.h"
#include "runtime/tokenizer/vocabulary.h"

namespace folio {

// What a piece is cut into before pairs are merged.
enum class BpeUnits { kBytes, kCharacters };

struct BpeOptions {
  BpeUnits units = BpeUnits::kBytes;
  // A piece that is in the vocabulary is that token, even where merging would
  // lead to others (tokenizer.json's ignore_merges).
  bool takes_whole_pieces = false;
  // What a character without a token becomes: the tokens of its UTF-8 bytes, if
  // all are there; else `unknown`, one for all such neighbours if
  // `fuses_unknown`.
  std::array<TokenId, 256> byte_tokens;  // kNoToken where there is none.
  std::optional<TokenId> unknown;
  bool fuses_unknown = false;

  BpeOptions() { byte_tokens.fill(kNoToken); }
};

// Immutable, so any number of threads may use one, each with its own merger.
class BpeModel {
 public:
  // `vocabulary` has the texts of the tokens that text may become; `merges` are
  // between those. Takes the time of encoding each token's own text once.
  // REQUIRES: each merge's token has the texts of its parts, one after another.
  BpeModel(Vocabulary vocabulary, MergeTable merges, const BpeOptions& options);

  // Appends the tokens of `piece`, which is not empty. False when some unit of
  // it has no token, and there is no unknown token: then `missing` is set to
  // it, and `tokens` may have got some of the piece's. O(n log n). REQUIRES:
  // `piece` is valid UTF-8, shorter than 2^31 bytes.
  bool EncodePiece(std::string_view piece, BpeMerger& merger,
                   std::vector<TokenId>& tokens, std::string& missing) const;

 private:
  bool EncodePart(std::string_view part, BpeMerger& merger,
                  std::vector<TokenId>& tokens, std::string& missing) const;
  bool AppendMerged(std::string_view part, BpeMerger& merger,
                    std::vector<TokenId>& tokens, std::string& missing) const;
  void CutIntoUnits(std::string_view part, std::vector<TokenId>& symbols) const;
  bool AppendByteTokens(uint32_t unit, std::vector<TokenId>& tokens) const;
  std::string BytesOfUnit(uint32_t unit) const;
  size_t EndOfPart(std::string_view piece, size_t begin) const;

  const Vocabulary vocabulary_;
  const MergeTable merges_;
  const BpeOptions options_;
  // The symbol of each unit: its token, or ~unit if it has none. Those below
  // 256 are in the array; of the others, those that have one are in the map.
  std::array<TokenId, 256> low_units_;
  absl::flat_hash_map<uint32_t, TokenId> high_units_;
  // [vocabulary_.size()] whether a piece with the token's text is that token.
  std::vector<bool> is_whole_;
  // No token goes on past the end of a word, so words are encoded one by one.
  bool keeps_words_apart_ = false;
};

}  // namespace folio

#endif  // RUNTIME_TOKENIZER_BPE_MODEL_H_
