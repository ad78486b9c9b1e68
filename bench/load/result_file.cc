#include "bench/load/result_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace folio {
namespace {

absl::Status CantWrite(const std::string& path) {
  return absl::UnavailableError(
      absl::StrCat("'", path, "' can't be written: ", std::strerror(errno)));
}

// What is written first, and then takes the place of `path`.
std::string PartialOf(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status found =
      std::filesystem::status(path, error);
  const bool is_replaced = !std::filesystem::exists(found) ||
                           std::filesystem::is_regular_file(found);
  return is_replaced ? path + ".partial" : path;
}

// Of `path`, into `partial`.
absl::Status WriteTo(const std::string& partial, const std::string& path,
                     std::string_view text) {
  errno = 0;
  std::ofstream file(partial, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  return file.good() ? absl::OkStatus() : CantWrite(path);
}

}  // namespace

absl::Status CheckWritable(const std::string& path) {
  const std::string partial = PartialOf(path);
  FOLIO_RETURN_IF_ERROR(WriteTo(partial, path, ""));
  if (partial != path) std::remove(partial.c_str());
  return absl::OkStatus();
}

absl::Status WriteResult(const std::string& path, std::string_view text) {
  const std::string partial = PartialOf(path);
  const absl::Status status = WriteTo(partial, path, text);
  if (partial == path) return status;
  if (!status.ok()) {
    std::remove(partial.c_str());
    return status;
  }
  if (std::rename(partial.c_str(), path.c_str()) != 0) return CantWrite(path);
  return absl::OkStatus();
}

}  // namespace folio
