#include "runtime/model/model_location.h"

#include <filesystem>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/model/embedded_model.h"

namespace folio {
namespace {

constexpr std::string_view kRandomPrefix = "random:";

// The last part of a path, whether or not it ends in a slash, without `ending`.
std::string NameOf(const std::string& path, std::string_view ending) {
  std::error_code ignored;
  std::filesystem::path normal =
      std::filesystem::absolute(path, ignored).lexically_normal();
  if (!normal.has_filename()) normal = normal.parent_path();
  std::string name = normal.filename().string();
  if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  return name;
}

}  // namespace

absl::StatusOr<ModelLocation> FindModel(const std::string& spec) {
  ModelLocation location;
  if (spec.empty()) {
    location.name = kEmbeddedModelName;
    location.files = EmbeddedModelFiles();
    return location;
  }
  if (spec.starts_with(kRandomPrefix)) {
    location.name = spec;
    location.random = spec.substr(kRandomPrefix.size());
    return location;
  }
  std::error_code error;
  const auto status = std::filesystem::status(spec, error);
  if (status.type() == std::filesystem::file_type::none) {
    return absl::ErrnoToStatus(error.value(),
                               absl::StrCat("--model '", spec, "'"));
  }
  if (!std::filesystem::exists(status)) {
    return absl::NotFoundError(absl::StrCat(
        "--model '", spec,
        "': there is no such file or folder; expected a GGUF file, or a folder "
        "with config.json and model.safetensors"));
  }
  if (std::filesystem::is_directory(status)) {
    location.name = NameOf(spec, "");
    location.files = ModelFiles::Folder(spec);
    return location;
  }
  location.name = NameOf(spec, ".gguf");
  FOLIO_ASSIGN_OR_RETURN(location.gguf, GgufFile::Open(spec));
  return location;
}

}  // namespace folio
