#include "runtime/model/family.h"

#include "absl/strings/str_cat.h"
#include "runtime/weights/shown.h"

namespace folio {

// The table: a declaration and an entry for each family.
extern const Family kTinyCausalLm;
extern const Family kLlama;
extern const Family kMistral;
extern const Family kQwen2;
extern const Family kQwen3;
extern const Family kGpt2;

std::span<const Family* const> Families() {
  static constexpr const Family* kFamilies[] = {
      &kTinyCausalLm, &kLlama, &kMistral, &kQwen2, &kQwen3, &kGpt2};
  return kFamilies;
}

namespace {

template <typename Matches, typename NameOf>
absl::StatusOr<const Family*> Find(const Matches& matches,
                                   const NameOf& name_of,
                                   std::string_view wanted,
                                   const std::string& where) {
  std::string supported;
  for (const Family* family : Families()) {
    if (!matches(*family)) continue;
    const std::string_view name = name_of(*family);
    if (name == wanted) return family;
    absl::StrAppend(&supported, supported.empty() ? "" : ", ",
                    std::string(name));
  }
  return Unsupported(absl::StrCat(where, ": architecture"), std::string(wanted),
                     supported);
}

}  // namespace

absl::StatusOr<const Family*> FindHfFamily(std::string_view architecture,
                                           const std::string& where) {
  return Find([](const Family&) { return true; },
              [](const Family& family) { return family.architecture; },
              architecture, where);
}

absl::StatusOr<const Family*> FindGgufFamily(std::string_view architecture,
                                             const std::string& where) {
  return Find([](const Family& family) { return family.read_gguf != nullptr; },
              [](const Family& family) { return family.short_name; },
              architecture, where);
}

absl::StatusOr<const Family*> FindRandomFamily(std::string_view short_name) {
  return Find([](const Family&) { return true; },
              [](const Family& family) { return family.short_name; },
              short_name, "--model random: arch");
}

absl::Status Unsupported(const std::string& where, const std::string& found,
                         const std::string& supported) {
  return absl::InvalidArgumentError(
      absl::StrCat(where, " ", found.empty() ? "\"\"" : Printable(found),
                   " is not supported; supported: ", supported));
}

}  // namespace folio
