#include "runtime/tokenizer/bpe_model.h"

#include <glog/logging.h>

#include <limits>
#include <utility>

#include "runtime/tokenizer/code_points.h"
#include "runtime/tokenizer/sentencepiece_text.h"

namespace folio {
namespace {

// Where the first marker of `text` from `from` on is that has something else
// before it; npos if there is none.
size_t FindWordStart(std::string_view text, size_t from) {
  for (size_t at = text.find(kSpaceMarker, from); at != text.npos;
       at = text.find(kSpaceMarker, at + kSpaceMarker.size())) {
    if (at > 0 && !text.substr(0, at).ends_with(kSpaceMarker)) return at;
  }
  return text.npos;
}

bool HasWordStartInside(const Vocabulary& vocabulary) {
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (FindWordStart(vocabulary.TextOf(id), 0) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace

BpeModel::BpeModel(Vocabulary vocabulary, MergeTable merges,
                   const BpeOptions& options)
    : vocabulary_(std::move(vocabulary)),
      merges_(std::move(merges)),
      options_(options) {
  const bool bytes = options_.units == BpeUnits::kBytes;
  for (uint32_t unit = 0; unit < low_units_.size(); ++unit) {
    const TokenId token = vocabulary_.Find(BytesOfUnit(unit));
    low_units_[unit] = token == kNoToken ? ~static_cast<TokenId>(unit) : token;
  }
  for (TokenId id = 0; id < vocabulary_.size() && !bytes; ++id) {
    const std::string_view text = vocabulary_.TextOf(id);
    if (text.empty()) continue;
    const CodePoint front = FrontCodePoint(text);
    if (front.length == text.size() && front.value >= low_units_.size()) {
      high_units_.try_emplace(front.value, id);
    }
  }
  keeps_words_apart_ = !bytes && !HasWordStartInside(vocabulary_);

  is_whole_.resize(vocabulary_.size(), options_.takes_whole_pieces);
  BpeMerger merger;
  std::vector<TokenId> tokens;
  std::string missing;
  for (TokenId id = 0; id < vocabulary_.size(); ++id) {
    if (options_.takes_whole_pieces || vocabulary_.TextOf(id).empty()) continue;
    tokens.clear();
    is_whole_[id] =
        AppendMerged(vocabulary_.TextOf(id), merger, tokens, missing) &&
        tokens.size() == 1 && tokens.front() == id;
  }
}

bool BpeModel::EncodePiece(std::string_view piece, BpeMerger& merger,
                           std::vector<TokenId>& tokens,
                           std::string& missing) const {
  DCHECK_LT(piece.size(), size_t{std::numeric_limits<int32_t>::max()});
  for (size_t begin = 0; begin < piece.size();) {
    const size_t end = EndOfPart(piece, begin);
    if (!EncodePart(piece.substr(begin, end - begin), merger, tokens,
                    missing)) {
      return false;
    }
    begin = end;
  }
  return true;
}

// What is merged stays in one part, so the parts of a piece can be encoded one
// by one: a merge across a word's end would make a token that has one inside.
size_t BpeModel::EndOfPart(std::string_view piece, size_t begin) const {
  if (!keeps_words_apart_) return piece.size();
  const size_t next = FindWordStart(piece, begin + 1);
  return next == piece.npos ? piece.size() : next;
}

bool BpeModel::EncodePart(std::string_view part, BpeMerger& merger,
                          std::vector<TokenId>& tokens,
                          std::string& missing) const {
  const TokenId whole = vocabulary_.Find(part);
  if (whole != kNoToken && is_whole_[whole]) {
    tokens.push_back(whole);
    return true;
  }
  return AppendMerged(part, merger, tokens, missing);
}

bool BpeModel::AppendMerged(std::string_view part, BpeMerger& merger,
                            std::vector<TokenId>& tokens,
                            std::string& missing) const {
  std::vector<TokenId>& symbols = merger.symbols();
  CutIntoUnits(part, symbols);
  merger.Run(merges_, symbols);
  bool after_unknown = false;
  for (const TokenId symbol : symbols) {
    if (symbol >= 0) {
      tokens.push_back(symbol);
      after_unknown = false;
    } else if (AppendByteTokens(~symbol, tokens)) {
      after_unknown = false;
    } else if (!options_.unknown.has_value()) {
      missing = BytesOfUnit(~symbol);
      return false;
    } else {
      if (!after_unknown || !options_.fuses_unknown) {
        tokens.push_back(*options_.unknown);
      }
      after_unknown = true;
    }
  }
  return true;
}

void BpeModel::CutIntoUnits(std::string_view part,
                            std::vector<TokenId>& symbols) const {
  symbols.clear();
  if (options_.units == BpeUnits::kBytes) {
    for (const char byte : part) {
      symbols.push_back(low_units_[static_cast<uint8_t>(byte)]);
    }
    return;
  }
  while (!part.empty()) {
    const CodePoint front = FrontCodePoint(part);
    part.remove_prefix(front.length);
    if (front.value < low_units_.size()) {
      symbols.push_back(low_units_[front.value]);
      continue;
    }
    const auto found = high_units_.find(front.value);
    symbols.push_back(found == high_units_.end()
                          ? ~static_cast<TokenId>(front.value)
                          : found->second);
  }
}

bool BpeModel::AppendByteTokens(uint32_t unit,
                                std::vector<TokenId>& tokens) const {
  const size_t before = tokens.size();
  for (const char byte : BytesOfUnit(unit)) {
    const TokenId token = options_.byte_tokens[static_cast<uint8_t>(byte)];
    if (token == kNoToken) {
      tokens.resize(before);
      return false;
    }
    tokens.push_back(token);
  }
  return true;
}

std::string BpeModel::BytesOfUnit(uint32_t unit) const {
  if (options_.units == BpeUnits::kBytes) {
    return std::string(1, static_cast<char>(unit));
  }
  std::string bytes;
  AppendUtf8(unit, bytes);
  return bytes;
}

}  // namespace folio
