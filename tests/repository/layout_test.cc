#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "tests/repository/layout_rules.h"
#include "tests/repository/source_tree.h"

namespace folio {
namespace {

const std::vector<SourceFile>& Files() {
  static const auto* const files =
      new std::vector<SourceFile>(ReadSourceTree(FOLIO_SOURCE_DIR));
  return *files;
}

bool IsCpp(const std::string& path) {
  return path.ends_with(".h") || path.ends_with(".cc");
}

TEST(Repository, TheTopLevelIsTheAllowedList) {
  ASSERT_FALSE(Files().empty());
  for (const SourceFile& file : Files()) {
    EXPECT_TRUE(IsAllowedAtTop(file.path)) << file.path;
  }
}

TEST(Repository, EveryHeaderHasItsGuard) {
  for (const SourceFile& file : Files()) {
    if (!file.path.ends_with(".h")) continue;
    EXPECT_TRUE(HasGuard(file)) << file.path << " needs " << GuardOf(file.path);
  }
}

TEST(Repository, NothingIsLeftUnfinished) {
  for (const SourceFile& file : Files()) {
    const auto found = FindUnfinished(file.text);
    EXPECT_FALSE(found.has_value()) << file.path << ":" << *found;
  }
}

TEST(Repository, CppIsFormatted) {
  // Versions differ in details; this is Debian 12's.
  constexpr char kVersion[] = "version 14.";
  const CommandResult version = RunCommand("clang-format --version");
  if (!version.ok || version.output.find(kVersion) == std::string::npos) {
    std::cout << "Not checked: clang-format " << kVersion
              << " is not on PATH.\n";
    return;
  }
  std::string command = absl::StrCat("cd ", ShellQuote(FOLIO_SOURCE_DIR),
                                     " && clang-format --dry-run -Werror");
  for (const SourceFile& file : Files()) {
    if (IsCpp(file.path)) absl::StrAppend(&command, " ", ShellQuote(file.path));
  }
  const CommandResult result = RunCommand(command);
  EXPECT_TRUE(result.ok) << result.output;
}

TEST(Repository, ShellScriptsParse) {
  for (const SourceFile& file : Files()) {
    if (!IsShellScript(file)) continue;
    const std::string path =
        std::filesystem::path(FOLIO_SOURCE_DIR) / file.path;
    const CommandResult result =
        RunCommand(absl::StrCat("bash -n ", ShellQuote(path)));
    EXPECT_TRUE(result.ok) << result.output;
  }
}

TEST(LayoutRules, KnowTheTopLevel) {
  EXPECT_TRUE(IsAllowedAtTop("README.md"));
  EXPECT_TRUE(IsAllowedAtTop(".clang-format"));
  EXPECT_TRUE(IsAllowedAtTop("cache/deep/file.cc"));
  EXPECT_FALSE(IsAllowedAtTop("notes.txt"));
  EXPECT_FALSE(IsAllowedAtTop("src/main.cc"));
  EXPECT_FALSE(IsAllowedAtTop("cachet/a.cc"));
}

TEST(LayoutRules, KnowGuards) {
  EXPECT_EQ(GuardOf("runtime/base/a-inl.h"), "RUNTIME_BASE_A_INL_H_");
  EXPECT_TRUE(HasGuard({"a/b.h",
                        "// What it is.\n\n#ifndef A_B_H_\n#define A_B_H_\n"
                        "int b;\n#endif  // A_B_H_\n"}));
  EXPECT_FALSE(HasGuard({"a/b.h", "#pragma once\nint b;\n"}));
  EXPECT_FALSE(HasGuard(
      {"a/c.h", "#ifndef A_B_H_\n#define A_B_H_\n#endif  // A_B_H_\n"}));
  EXPECT_FALSE(HasGuard({"a/b.h", "#ifndef A_B_H_\n#define A_B_H_\n#endif\n"}));
  EXPECT_FALSE(
      HasGuard({"a/b.h", "#ifndef A_B_H_\n#define A_H_\n#endif  // A_B_H_\n"}));
  EXPECT_TRUE(HasGuard(
      {"a-inl.h",
       "#if defined(A_INL_H_) == defined(HWY_TARGET_TOGGLE)\n"
       "#ifdef A_INL_H_\n#undef A_INL_H_\n#else\n#define A_INL_H_\n#endif\n"
       "int b;\n#endif  // A_INL_H_\n"}));
}

TEST(LayoutRules, FindUnfinishedWork) {
  EXPECT_EQ(FindUnfinished("int a;\n// TO"
                           "DO: b\n"),
            "2: TO"
            "DO");
  EXPECT_EQ(FindUnfinished("// FIX"
                           "ME"),
            "1: FIX"
            "ME");
  EXPECT_EQ(FindUnfinished("# X"
                           "XX why"),
            "1: X"
            "XX");
  EXPECT_EQ(FindUnfinished("TEST(A, DIS"
                           "ABLED_B)"),
            "1: DIS"
            "ABLED_");
  EXPECT_EQ(FindUnfinished("\"file-XXXXXX\" // todo.h, disabled"),
            std::nullopt);
}

TEST(LayoutRules, KnowShellScripts) {
  EXPECT_TRUE(IsShellScript({"a.sh", ""}));
  EXPECT_TRUE(IsShellScript({".ci/run", "#!/usr/bin/env bash\nset -e\n"}));
  EXPECT_TRUE(IsShellScript({"run", "#!/bin/sh\n"}));
  EXPECT_FALSE(IsShellScript({"a.py", "#!/usr/bin/env python3\n"}));
  EXPECT_FALSE(IsShellScript({"README.md", "bash\n"}));
}

TEST(SourceTree, RunsCommands) {
  const CommandResult both = RunCommand("echo out; echo err >&2");
  EXPECT_TRUE(both.ok);
  EXPECT_EQ(both.output, "out\nerr\n");
  EXPECT_FALSE(RunCommand("exit 3").ok);
  EXPECT_EQ(RunCommand("printf %s " + ShellQuote("a 'b' $c")).output,
            "a 'b' $c");
}

}  // namespace
}  // namespace folio
