// The files of the repository, for tests of its own rules.

#ifndef TESTS_REPOSITORY_SOURCE_TREE_H_
#define TESTS_REPOSITORY_SOURCE_TREE_H_

#include <string>
#include <vector>

namespace folio {

struct SourceFile {
  std::string path;  // From the root.
  std::string text;
};

// Every file below `root` that git does not ignore, sorted by path. Where git
// can't tell (an unpacked archive), every file outside build/ and .git/.
std::vector<SourceFile> ReadSourceTree(const std::string& root);

// What a shell command wrote to its standard output and error, and whether it
// succeeded.
struct CommandResult {
  bool ok;
  std::string output;
};
CommandResult RunCommand(const std::string& command);

// `text` as one word for the shell.
std::string ShellQuote(const std::string& text);

}  // namespace folio

#endif  // TESTS_REPOSITORY_SOURCE_TREE_H_
