// Which folder may include which: the picture of the architecture, as data.

#ifndef TESTS_REPOSITORY_DEPENDENCY_RULES_H_
#define TESTS_REPOSITORY_DEPENDENCY_RULES_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/repository/source_tree.h"

namespace folio {

// What the files of one folder may include, besides each other.
struct Allowance {
  std::string_view folder;
  // Empty: every header of `folder`.
  std::vector<std::string_view> headers = {};
};

using DependencyTable = std::map<std::string_view, std::vector<Allowance>>;

// A row for every folder that has C++ files of ours, except the tests proper,
// which may include everything; or for a file that is in none of them.
const DependencyTable& Dependencies();

// One line for each #include in `files` that breaks a rule, as "path:line:
// why". `files` are all files of the repository. The rules, besides the table:
//   - ours are included in quotes, by full path from the root, and exist;
//   - gRPC and Protobuf stay in the folders that speak them;
//   - oneDNN stays in one file of runtime/kernels.
std::vector<std::string> FindBadIncludes(const DependencyTable& table,
                                         const std::vector<SourceFile>& files);

// The folders of a cycle in `table`, first and last the same; empty if none.
std::vector<std::string_view> FindCycle(const DependencyTable& table);

}  // namespace folio

#endif  // TESTS_REPOSITORY_DEPENDENCY_RULES_H_
