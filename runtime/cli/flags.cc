#include "runtime/cli/flags.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/byte_size.h"
#include "runtime/server/host_port.h"

namespace folio {

CLI::Option* AddByteSizeOption(CLI::App& app, const std::string& name,
                               std::optional<int64_t>& bytes,
                               const std::string& description) {
  const auto parse = [name, &bytes](const std::string& text) {
    const absl::StatusOr<int64_t> parsed = ParseByteSize(text);
    if (!parsed.ok()) {
      throw CLI::ValidationError(name, std::string(parsed.status().message()));
    }
    bytes = *parsed;
  };
  return app.add_option_function<std::string>(name, parse, description)
      ->type_name("SIZE");
}

CLI::Option* AddDurationOption(CLI::App& app, const std::string& name,
                               std::optional<absl::Duration>& duration,
                               const std::string& description) {
  const auto parse = [name, &duration](const std::string& text) {
    absl::Duration parsed;
    if (!absl::ParseDuration(text, &parsed) || parsed <= absl::ZeroDuration() ||
        parsed == absl::InfiniteDuration()) {
      throw CLI::ValidationError(
          name, "'" + text +
                    "' is not a length of time above zero; give a number and "
                    "a unit, such as 50ms or 1.5s");
    }
    duration = parsed;
  };
  return app.add_option_function<std::string>(name, parse, description)
      ->type_name("TIME");
}

CLI::Option* AddListOption(CLI::App& app, const std::string& name,
                           std::vector<int32_t>& numbers,
                           const std::string& description) {
  const auto parse = [name, &numbers](const std::string& text) {
    numbers.clear();
    if (text.empty()) return;
    for (const auto part : absl::StrSplit(text, ',')) {
      int32_t number;
      if (!absl::SimpleAtoi(part, &number)) {
        throw CLI::ValidationError(
            name, "'" + std::string(part) +
                      "' is not a whole number of 32 bits; give numbers with "
                      "commas between them, such as 1,2,3");
      }
      numbers.push_back(number);
    }
  };
  return app.add_option_function<std::string>(name, parse, description)
      ->type_name("N,N,...");
}

CLI::Option* AddSeedOption(CLI::App& app, std::optional<uint64_t>& seed,
                           const std::string& description) {
  // CLI11's own parsing takes -1 for the greatest number.
  const auto parse = [&seed](const std::string& text) {
    uint64_t number;
    if (!absl::SimpleAtoi(text, &number)) {
      throw CLI::ValidationError(
          "--seed", "'" + text + "' is not a whole number from 0 to 2^64 - 1");
    }
    seed = number;
  };
  return app.add_option_function<std::string>("--seed", parse, description)
      ->type_name("S");
}

CLI::Option* AddElementTypeOption(CLI::App& app, const std::string& name,
                                  std::span<const ElementType> allowed,
                                  std::optional<ElementType>& type,
                                  const std::string& description) {
  std::vector<std::string> names = {"auto"};
  for (const ElementType known : allowed) names.emplace_back(NameOf(known));
  const auto parse = [name, names, allowed, &type](const std::string& text) {
    type.reset();
    if (text == "auto") return;
    for (const ElementType known : allowed) {
      if (text == NameOf(known)) type = known;
    }
    if (type.has_value()) return;
    throw CLI::ValidationError(
        name, "'" + text + "' is not one of " + absl::StrJoin(names, ", "));
  };
  return app.add_option_function<std::string>(name, parse, description)
      ->type_name(absl::StrJoin(names, "|"));
}

CLI::Option* AddServerOption(CLI::App& app, std::optional<std::string>& server,
                             const std::string& description) {
  return app.add_option("--server", server, description)
      ->check(HostPortCheck(/*min_port=*/1))
      ->type_name("ADDR:PORT");
}

CLI::Validator NotEmptyCheck() {
  return CLI::Validator(
      [](const std::string& text) {
        return std::string(text.empty() ? "it is empty" : "");
      },
      /*validator_desc=*/"");
}

CLI::Validator HostPortCheck(int min_port) {
  const auto check = [min_port](const std::string& text) {
    return std::string(ParseHostPort(text, min_port).status().message());
  };
  return CLI::Validator(check, /*validator_desc=*/"");
}

}  // namespace folio
