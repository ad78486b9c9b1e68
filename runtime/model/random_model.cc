#include "runtime/model/random_model.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"
#include "runtime/model/decoder_tensors.h"

namespace folio {
namespace {

using Items = std::vector<std::pair<std::string, std::string>>;

// Sizes that are worth a name: a llama as small as is useful, and one whose
// weights are far larger than any cache.
constexpr std::pair<std::string_view, std::string_view> kPresets[] = {
    {"llama-135m",
     "arch=llama,vocab=50257,hidden=576,layers=30,heads=9,kv_heads=3,"
     "head_dim=64,ffn=1536,context=8192,tied=1"},
    {"llama-1b",
     "arch=llama,vocab=32000,hidden=2048,layers=16,heads=32,kv_heads=8,"
     "head_dim=64,ffn=8192,context=8192,tied=1"},
};

// The pairs of key and value, those of a preset in front of the others.
Items SplitItems(std::string_view text) {
  Items items;
  const std::string_view first = text.substr(0, text.find(','));
  const auto* const preset = std::ranges::find(
      kPresets, first, &std::pair<std::string_view, std::string_view>::first);
  if (preset != std::end(kPresets)) {
    items = SplitItems(preset->second);
    text.remove_prefix(first.size());
  }
  for (const std::string& item : std::vector<std::string>(
           absl::StrSplit(absl::string_view(text.data(), text.size()), ',',
                          absl::SkipEmpty()))) {
    items.push_back(absl::StrSplit(item, absl::MaxSplits('=', 1)));
  }
  return items;
}

// As wide as makes gate, up and down together as large as an FFN of two
// products and four times the hidden size (Shazeer, 2020), in whole multiples
// of 32.
int32_t SwiGluSize(int32_t hidden_size) {
  const int64_t size = (int64_t{hidden_size} * 8 / 3 + 31) / 32 * 32;
  return static_cast<int32_t>(std::clamp<int64_t>(size, 0, 1 << 30));
}

absl::Status ReadItem(const std::string& key, const std::string& value,
                      RandomModel& model) {
  DecoderConfig& config = model.config;
  const std::pair<std::string_view, int32_t*> numbers[] = {
      {"vocab", &config.vocab_size},  {"hidden", &config.hidden_size},
      {"heads", &config.num_heads},   {"kv_heads", &config.num_kv_heads},
      {"head_dim", &config.head_dim}, {"layers", &config.num_layers},
      {"ffn", &config.ffn_size},      {"context", &config.context_length}};
  bool known = key == "seed";
  bool read = known && absl::SimpleAtoi(value, &model.seed);
  for (const auto& [name, number] : numbers) {
    if (key != name) continue;
    known = true;
    read = absl::SimpleAtoi(value, number);
  }
  if (key == "window") {
    known = true;
    read = absl::SimpleAtoi(value, &config.window.emplace());
  }
  if (key == "tied") {
    known = true;
    read = value == "0" || value == "1";
    config.tied_head = value == "1";
  }
  if (read) return absl::OkStatus();
  return absl::InvalidArgumentError(
      known ? absl::StrCat("--model random: ", key, " is \"", value,
                           "\"; expected ",
                           key == "tied" ? "0 or 1." : "a whole number.")
            : absl::StrCat("--model random: \"", key,
                           "\" is not one of arch, vocab, hidden, heads, "
                           "kv_heads, head_dim, layers, ffn, context, window, "
                           "tied, seed, followed by = and a value, nor, at "
                           "the first place, llama-135m or llama-1b."));
}

}  // namespace

absl::StatusOr<RandomModel> ParseRandomModel(const std::string& text) {
  // One f32 of each: 16 GiB.
  constexpr int64_t kMaxParameters = int64_t{1} << 32;
  const Items items = SplitItems(text);
  std::string arch = "tiny";
  for (const auto& [key, value] : items) {
    if (key == "arch") arch = value;
  }
  RandomModel model;
  FOLIO_ASSIGN_OR_RETURN(model.family, FindRandomFamily(arch));
  model.config = model.family->defaults();
  model.config.architecture = std::string(model.family->architecture);
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(
        items, [&](const auto& item) { return item.first == name; });
  };
  if (has("heads") && !has("kv_heads")) model.config.num_kv_heads = 0;
  if (has("hidden") && !has("ffn")) model.config.ffn_size = 0;
  for (const auto& [key, value] : items) {
    if (key != "arch") FOLIO_RETURN_IF_ERROR(ReadItem(key, value, model));
  }
  if (model.config.ffn_size == 0 && model.config.ffn == FfnKind::kSwiGlu) {
    model.config.ffn_size = SwiGluSize(model.config.hidden_size);
  }
  CompleteConfig(model.config);
  if (const absl::Status valid = ValidateConfig(model.config); !valid.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--model random: ", std::string(valid.message())));
  }
  const int64_t parameters =
      NumParameters(ExpectedTensors(model.config, model.family->hf_names()));
  if (parameters > kMaxParameters) {
    return absl::InvalidArgumentError(
        absl::StrCat("--model random: ", parameters, " parameters; at most ",
                     kMaxParameters, " are allowed."));
  }
  return model;
}

}  // namespace folio
