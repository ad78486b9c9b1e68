#include "tests/repository/source_tree.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace folio {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> WalkFiles(const fs::path& root) {
  std::vector<std::string> paths;
  for (auto it = fs::recursive_directory_iterator(root);
       it != fs::recursive_directory_iterator(); ++it) {
    const std::string path = it->path().lexically_relative(root);
    if (path == "build" || path == ".git") it.disable_recursion_pending();
    if (it->is_regular_file()) paths.push_back(path);
  }
  return paths;
}

std::vector<std::string> ListFiles(const std::string& root) {
  // Untracked files count too: what is not ignored is about to be committed.
  const CommandResult git = RunCommand(absl::StrCat(
      "git -C ", ShellQuote(root),
      " -c core.quotePath=off ls-files --cached --others --exclude-standard"));
  if (!git.ok) return WalkFiles(root);
  return absl::StrSplit(git.output, '\n', absl::SkipEmpty());
}

}  // namespace

std::vector<SourceFile> ReadSourceTree(const std::string& root) {
  std::vector<std::string> paths = ListFiles(root);
  std::ranges::sort(paths);
  std::vector<SourceFile> files;
  for (const std::string& path : paths) {
    // A file that git knows may be deleted in the working tree.
    std::ifstream in(fs::path(root) / path, std::ios::binary);
    if (!in.is_open()) continue;
    files.push_back(
        {path, std::string(std::istreambuf_iterator<char>(in), {})});
  }
  return files;
}

CommandResult RunCommand(const std::string& command) {
  FILE* const pipe =
      popen(absl::StrCat("{ ", command, "; } 2>&1").c_str(), "r");
  PCHECK(pipe != nullptr) << command;
  CommandResult result;
  char buffer[4096];
  while (const size_t size = fread(buffer, 1, sizeof(buffer), pipe)) {
    result.output.append(buffer, size);
  }
  result.ok = pclose(pipe) == 0;
  return result;
}

std::string ShellQuote(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

}  // namespace folio
