#include "tests/repository/layout_rules.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace folio {
namespace {

constexpr std::string_view kTopLevel[] = {"CMakeLists.txt", "CMakePresets.json",
                                          "LICENSE",        "README.md",
                                          "bench",          "cache",
                                          "proto",          "runtime",
                                          "scheduler",      "tests"};

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

bool IsWordCharacter(char c) { return absl::ascii_isalnum(c) || c == '_'; }

}  // namespace

bool IsAllowedAtTop(std::string_view path) {
  const std::string_view top = path.substr(0, path.find('/'));
  return top.starts_with('.') ||
         std::ranges::find(kTopLevel, top) != std::end(kTopLevel);
}

std::string GuardOf(std::string_view path) {
  std::string guard;
  for (const char c : path) {
    guard.push_back(absl::ascii_isalnum(c) ? absl::ascii_toupper(c) : '_');
  }
  guard.push_back('_');
  return guard;
}

bool HasGuard(const SourceFile& header) {
  const std::string guard = GuardOf(header.path);
  const std::string open =
      header.path.ends_with("-inl.h")
          ? absl::StrCat("\n#if defined(", guard,
                         ") == defined(HWY_TARGET_TOGGLE)\n#ifdef ", guard,
                         "\n#undef ", guard, "\n#else\n#define ", guard,
                         "\n#endif\n")
          : absl::StrCat("\n#ifndef ", guard, "\n#define ", guard, "\n");
  const std::string text = absl::StrCat("\n", header.text);
  return Contains(text, open) &&
         text.ends_with(absl::StrCat("\n#endif  // ", guard, "\n"));
}

std::optional<std::string> FindUnfinished(std::string_view text) {
  // In pieces, because this file is searched too.
  static const auto* const marks = new std::vector<std::string>{
      absl::StrCat("TO", "DO"), absl::StrCat("FIX", "ME"),
      absl::StrCat("X", "XX"), absl::StrCat("DIS", "ABLED_")};
  for (size_t i = 0; i < text.size(); ++i) {
    if (i > 0 && IsWordCharacter(text[i - 1])) continue;
    for (const std::string& mark : *marks) {
      if (!text.substr(i).starts_with(mark)) continue;
      const size_t end = i + mark.size();
      // The last mark is a prefix of a test's name, the others are words.
      const bool is_word = end == text.size() || !IsWordCharacter(text[end]);
      if (!is_word && mark.back() != '_') continue;
      const auto line = std::count(text.begin(), text.begin() + i, '\n') + 1;
      return absl::StrCat(line, ": ", mark);
    }
  }
  return std::nullopt;
}

bool IsShellScript(const SourceFile& file) {
  if (file.path.ends_with(".sh")) return true;
  const std::string_view text = file.text;
  const std::string_view first = text.substr(0, text.find('\n'));
  return first.starts_with("#!") &&
         (first.ends_with("/sh") || first.ends_with("bash"));
}

}  // namespace folio
