// Rules about single files of the repository.

#ifndef TESTS_REPOSITORY_LAYOUT_RULES_H_
#define TESTS_REPOSITORY_LAYOUT_RULES_H_

#include <optional>
#include <string>
#include <string_view>

#include "tests/repository/source_tree.h"

namespace folio {

// Whether a file may have `path`: the top level is a fixed list, and hidden
// files.
bool IsAllowedAtTop(std::string_view path);

// The include guard that a header at `path` has: cache/kv_cache.h has
// CACHE_KV_CACHE_H_.
std::string GuardOf(std::string_view path);

// Whether a header has its guard. One that Highway includes once a target
// ("-inl.h") has Highway's toggle around the same name.
bool HasGuard(const SourceFile& header);

// The first mark of unfinished work in `text`, as "line: mark".
std::optional<std::string> FindUnfinished(std::string_view text);

// Whether a shell should be able to read the file.
bool IsShellScript(const SourceFile& file);

}  // namespace folio

#endif  // TESTS_REPOSITORY_LAYOUT_RULES_H_
