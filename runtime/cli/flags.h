// Kinds of flags that several commands have.

#ifndef RUNTIME_CLI_FLAGS_H_
#define RUNTIME_CLI_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "runtime/base/element_type.h"

namespace folio {

// An amount of memory, such as 256MiB, into `bytes`, which must outlive `app`'s
// parsing, as must what the other functions here fill.
CLI::Option* AddByteSizeOption(CLI::App& app, const std::string& name,
                               std::optional<int64_t>& bytes,
                               const std::string& description);

// A length of time, such as 50ms, above zero, into `duration`.
CLI::Option* AddDurationOption(CLI::App& app, const std::string& name,
                               std::optional<absl::Duration>& duration,
                               const std::string& description);

// Whole numbers with commas between them, such as 1,2,3, into `numbers`. An
// empty text is an empty list.
CLI::Option* AddListOption(CLI::App& app, const std::string& name,
                           std::vector<int32_t>& numbers,
                           const std::string& description);

// Any seed of 64 bits, into `seed`.
CLI::Option* AddSeedOption(CLI::App& app, std::optional<uint64_t>& seed,
                           const std::string& description);

// Refuses an empty text, which is a shell's variable that is not set.
CLI::Validator NotEmptyCheck();

// Takes ADDR:PORT with a port from `min_port` on.
CLI::Validator HostPortCheck(int min_port);

// auto, which leaves `type` empty, or the name of an allowed type. `allowed`
// must outlive the parsing, too.
CLI::Option* AddElementTypeOption(CLI::App& app, const std::string& name,
                                  std::span<const ElementType> allowed,
                                  std::optional<ElementType>& type,
                                  const std::string& description);

// The address of a server, into `server`.
CLI::Option* AddServerOption(CLI::App& app, std::optional<std::string>& server,
                             const std::string& description);

}  // namespace folio

#endif  // RUNTIME_CLI_FLAGS_H_
