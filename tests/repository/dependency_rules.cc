#include "tests/repository/dependency_rules.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace folio {

const DependencyTable& Dependencies() {
  static const auto* const table = new DependencyTable{
      {"runtime/base", {}},
      {"cache", {{"runtime/base"}}},
      {"scheduler", {{"runtime/base"}, {"cache"}}},
      {"runtime/kernels", {{"runtime/base"}}},
      {"runtime/weights", {{"runtime/base"}}},
      {"runtime/tokenizer",
       {{"runtime/base"},
        {"runtime/weights",
         {"runtime/weights/gguf.h", "runtime/weights/model_files.h",
          "runtime/weights/shown.h"}}}},
      {"runtime/model",
       {{"runtime/base"},
        {"runtime/kernels"},
        {"runtime/weights"},
        {"cache",
         {"cache/kv_layout.h", "cache/kv_storage.h", "cache/page_table.h"}}}},
      {"runtime/engine",
       {{"runtime/base"},
        {"scheduler"},
        {"cache"},
        {"runtime/model"},
        {"runtime/tokenizer"},
        {"runtime/kernels"}}},
      {"proto", {}},
      {"runtime/client", {{"runtime/base"}, {"proto"}}},
      {"runtime/server",
       {{"runtime/base"},
        {"runtime/engine"},
        {"runtime/tokenizer"},
        {"proto"},
        {"scheduler"}}},
      {"runtime/cli",
       {{"runtime/base"},
        {"runtime/server"},
        {"runtime/client"},
        {"runtime/engine"},
        {"runtime/model"},
        // `folio bench` prints the machine's limits beside what it reached.
        {"runtime/kernels", {"runtime/kernels/product_ceiling.h"}},
        {"runtime/tokenizer"},
        // Flags are made of the table of policies.
        {"scheduler",
         {"scheduler/scheduler_options.h", "scheduler/scheduling_policy.h"}},
        {"cache"},
        {"proto"}}},
      // What programs that embed an engine include, and nothing else.
      {"runtime/folio.h",
       {{"runtime/base"}, {"runtime/engine"}, {"scheduler"}}},
      {"runtime/examples", {{"runtime/folio.h"}}},
      {"bench",
       {{"runtime/base"},
        {"cache"},
        {"scheduler"},
        {"runtime/kernels"},
        {"runtime/weights"},
        {"runtime/tokenizer"},
        {"runtime/model"},
        {"runtime/engine"},
        {"proto"},
        {"runtime/client"},
        {"runtime/server"},
        {"runtime/cli"}}},
      {"tests/support",
       {{"runtime/base"},
        {"cache"},
        {"scheduler"},
        {"runtime/kernels"},
        {"runtime/weights"},
        {"runtime/tokenizer"},
        {"runtime/model"},
        {"runtime/engine"}}},
  };
  return *table;
}

namespace {

// A library that only some folders, or files, may include.
struct Confined {
  std::string_view library;
  std::vector<std::string_view> include_prefixes;
  std::vector<std::string_view> places;
};

const std::vector<Confined>& ConfinedLibraries() {
  static const auto* const libraries = new std::vector<Confined>{
      {"gRPC and Protobuf",
       {"grpc/", "grpcpp/", "grpc++/", "google/protobuf/"},
       // The service is measured beside a service of gRPC's alone.
       {"proto/", "runtime/server/", "runtime/client/", "bench/load/",
        "bench/service_overhead.cc"}},
      {"prometheus-cpp", {"prometheus/"}, {"runtime/server/"}},
      {"libcurl", {"curl/"}, {"bench/load/"}},
      // What Folio's own products are measured beside.
      {"oneDNN",
       {"dnnl", "oneapi/dnnl"},
       {"runtime/kernels/product_ceiling.cc"}},
  };
  return *libraries;
}

// Libraries that Google's style includes in quotes, as if they were ours.
constexpr std::string_view kQuotedLibraries[] = {
    "absl/", "gmock/", "google/protobuf/", "grpc/", "gtest/", "hwy/"};

struct Include {
  std::string path;
  bool quoted;
  int line;
};

// The includes among the lines of `text`: `#include`, with spaces anywhere, and
// a path between quotes or angles.
std::vector<Include> IncludesOf(const std::string& text) {
  std::vector<Include> includes;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const auto take = [&line](absl::string_view word) {
      line = absl::StripLeadingAsciiWhitespace(line);
      return absl::ConsumePrefix(&line, word);
    };
    if (!take("#") || !take("include")) continue;
    const bool quoted = take("\"");
    if (!quoted && !take("<")) continue;
    const size_t end = line.find(quoted ? '"' : '>');
    if (end == line.npos) continue;
    includes.push_back({std::string(line.substr(0, end)), quoted, number});
  }
  return includes;
}

bool IsCpp(std::string_view path) {
  return path.ends_with(".h") || path.ends_with(".cc");
}

bool StartsWithAny(std::string_view text, const auto& prefixes) {
  return std::ranges::any_of(prefixes, [text](std::string_view prefix) {
    return text.starts_with(prefix);
  });
}

// "a/b/c" is in the folders "a/b" and "a".
bool IsIn(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && path.size() > folder.size() &&
         path[folder.size()] == '/';
}

// Checks the includes of the whole repository; complaints gather in `bad`.
class Checker {
 public:
  Checker(const DependencyTable& table, const std::vector<SourceFile>& files)
      : table_(table) {
    for (const SourceFile& file : files) paths_.insert(file.path);
  }

  void Check(const SourceFile& file) {
    if (!IsCpp(file.path)) return;
    // The tests proper reach into everything that they test.
    const bool is_test =
        IsIn(file.path, "tests") && !IsIn(file.path, "tests/support");
    const auto from = FolderOf(file.path);
    if (!from.has_value() && !is_test) {
      bad.push_back(absl::StrCat(
          file.path, ":1: its folder has no row in the table of dependencies"));
    }
    for (const Include& include : IncludesOf(file.text)) {
      const auto complain = [&](std::string_view why) {
        bad.push_back(absl::StrCat(file.path, ":", include.line, ": ",
                                   include.path, " ", std::string(why)));
      };
      const std::optional<std::string> ours = Resolve(include, complain);
      if (is_test) continue;
      CheckConfined(file.path, include, complain);
      if (from.has_value() && ours.has_value()) {
        CheckEdge(*from, *ours, complain);
      }
    }
  }

  std::vector<std::string> bad;

 private:
  // The folder of the table that `path` is in, or `path` if it has a row.
  std::optional<std::string_view> FolderOf(std::string_view path) const {
    for (const auto& [folder, allowed] : table_) {
      if (path == folder || IsIn(path, folder)) return folder;
    }
    return std::nullopt;
  }

  // The file of the repository that an include means; for a generated header,
  // the .proto it comes from. Nothing for a library's.
  std::optional<std::string> Resolve(const Include& include,
                                     const auto& complain) const {
    if (paths_.contains(include.path)) {
      if (!include.quoted) complain("is ours: include it in quotes");
      return include.path;
    }
    if (const size_t end = std::min(include.path.find(".pb.h"),
                                    include.path.find(".grpc.pb.h"));
        end != std::string::npos) {
      const std::string proto = include.path.substr(0, end) + ".proto";
      for (const std::string& source : {proto, absl::StrCat("proto/", proto)}) {
        if (paths_.contains(source)) return source;
      }
    }
    if (include.quoted && !StartsWithAny(include.path, kQuotedLibraries)) {
      complain("does not exist; include ours by full path from the root");
    }
    return std::nullopt;
  }

  void CheckConfined(const std::string& path, const Include& include,
                     const auto& complain) {
    for (const Confined& library : ConfinedLibraries()) {
      if (!StartsWithAny(include.path, library.include_prefixes)) continue;
      if (StartsWithAny(path, library.places)) continue;
      complain(absl::StrCat(
          "belongs to ", std::string(library.library), ", which stays in ",
          absl::StrJoin(library.places, ", ", [](std::string* out, auto place) {
            out->append(place);
          })));
    }
  }

  void CheckEdge(std::string_view from, const std::string& to_path,
                 const auto& complain) const {
    const std::optional<std::string_view> to = FolderOf(to_path);
    if (!to.has_value()) {
      complain("is in a folder that nobody may include");
      return;
    }
    if (*to == from) return;
    for (const Allowance& allowance : table_.at(from)) {
      if (allowance.folder != *to) continue;
      if (allowance.headers.empty() ||
          std::ranges::find(allowance.headers, to_path) !=
              allowance.headers.end()) {
        return;
      }
    }
    complain(absl::StrCat("may not be included from ", std::string(from)));
  }

  const DependencyTable& table_;
  std::set<std::string, std::less<>> paths_;
};

// Depth first from `folder`; `path` is the way to it. True when `path` ends in
// a cycle.
bool Visit(const DependencyTable& table, std::string_view folder,
           std::vector<std::string_view>& path,
           std::set<std::string_view>& done) {
  const auto first = std::ranges::find(path, folder);
  const bool is_cycle = first != path.end();
  if (is_cycle) path.erase(path.begin(), first);
  path.push_back(folder);
  if (is_cycle) return true;
  if (const auto row = table.find(folder);
      row != table.end() && !done.contains(folder)) {
    for (const Allowance& allowance : row->second) {
      if (Visit(table, allowance.folder, path, done)) return true;
    }
  }
  done.insert(folder);
  path.pop_back();
  return false;
}

}  // namespace

std::vector<std::string> FindBadIncludes(const DependencyTable& table,
                                         const std::vector<SourceFile>& files) {
  Checker checker(table, files);
  for (const SourceFile& file : files) checker.Check(file);
  return checker.bad;
}

std::vector<std::string_view> FindCycle(const DependencyTable& table) {
  std::set<std::string_view> done;
  for (const auto& [folder, allowed] : table) {
    std::vector<std::string_view> path;
    if (Visit(table, folder, path, done)) return path;
  }
  return {};
}

}  // namespace folio
