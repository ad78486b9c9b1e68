#include "runtime/weights/model_files.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/json_file.h"
#include "runtime/weights/safetensors.h"
#include "runtime/weights/shown.h"

namespace folio {
namespace {

using nlohmann::json;

constexpr std::string_view kSingleFile = "model.safetensors";
constexpr std::string_view kIndexFile = "model.safetensors.index.json";
constexpr std::string_view kWeightMap = "weight_map";

// Tensor to shard, or the other way round.
using NameMap = std::map<std::string, std::string, std::less<>>;

bool IsPlainFileName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

// Which shard each tensor is in, according to the index in `path`.
absl::StatusOr<NameMap> ParseIndex(const json& index, const std::string& path) {
  const bool has_map = index.is_object() && index.contains(kWeightMap) &&
                       index[kWeightMap].is_object();
  if (!has_map) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "': found ", ShownJson(index),
                     "; expected an object whose weight_map is an object of "
                     "tensors and their files"));
  }
  NameMap shard_of;
  for (const auto& [tensor, shard] : index[kWeightMap].items()) {
    if (!shard.is_string() ||
        !IsPlainFileName(shard.get_ref<const std::string&>())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", path, "': tensor ", Shown(tensor), ": its file is ",
          ShownJson(shard), "; expected the name of a file in this folder"));
    }
    shard_of[tensor] = shard.get_ref<const std::string&>();
  }
  return shard_of;
}

// Collects the tensors of shards.
class ShardMerger {
 public:
  // `shard_of` is the index in the file `index_path`.
  ShardMerger(const NameMap& shard_of, const std::string& index_path)
      : shard_of_(shard_of), index_path_(index_path) {}

  absl::Status Add(const std::string& shard, const std::string& path,
                   TensorTable table) {
    for (auto& [name, view] : table.tensors) {
      FOLIO_RETURN_IF_ERROR(Claim(name, shard, path));
      merged_.tensors[name] = std::move(view);
    }
    for (const auto& [name, dtype] : table.unreadable) {
      FOLIO_RETURN_IF_ERROR(Claim(name, shard, path));
      merged_.unreadable[name] = dtype;
    }
    return absl::OkStatus();
  }

  // After all shards.
  absl::StatusOr<TensorTable> Finish() && {
    for (const auto& [name, shard] : shard_of_) {
      if (!found_in_.contains(name)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "'", index_path_, "': tensor ", Shown(name), ": expected in ",
            Shown(shard), ", which does not have it"));
      }
      FOLIO_RETURN_IF_ERROR(CheckPlace(name, found_in_[name]));
    }
    for (const auto& [name, shard] : found_in_) {
      if (!shard_of_.contains(name)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "'", index_path_, "': tensor ", Shown(name), ": found in ",
            Shown(shard), ", but the index does not list it"));
      }
    }
    return std::move(merged_);
  }

 private:
  absl::Status Claim(const std::string& name, const std::string& shard,
                     const std::string& path) {
    const auto [entry, is_new] = found_in_.try_emplace(name, shard);
    if (is_new) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "': tensor ", Shown(name), ": it is in ",
                     Shown(entry->second), " too; expected in one file"));
  }

  absl::Status CheckPlace(const std::string& name,
                          const std::string& found) const {
    const std::string& expected = shard_of_.find(name)->second;
    if (found == expected) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("'", index_path_, "': tensor ", Shown(name), ": found in ",
                     Shown(found), "; expected in ", Shown(expected)));
  }

  const NameMap& shard_of_;
  const std::string& index_path_;
  TensorTable merged_;
  NameMap found_in_;
};

}  // namespace

ModelFiles ModelFiles::Folder(std::string path) {
  return ModelFiles(std::move(path), /*on_disk=*/true, {});
}

ModelFiles ModelFiles::InMemory(std::string name, std::vector<Embedded> files) {
  return ModelFiles(std::move(name), /*on_disk=*/false, std::move(files));
}

std::string ModelFiles::PathOf(std::string_view file) const {
  return std::filesystem::path(path_) / file;
}

bool ModelFiles::Has(std::string_view file) const {
  if (on_disk_) {
    std::error_code ignored;
    return std::filesystem::exists(PathOf(file), ignored);
  }
  return std::ranges::find(files_, file, &Embedded::name) != files_.end();
}

absl::StatusOr<std::shared_ptr<const MappedFile>> ModelFiles::Open(
    std::string_view file) const {
  if (on_disk_) return MappedFile::Open(PathOf(file));
  const auto entry = std::ranges::find(files_, file, &Embedded::name);
  if (entry == files_.end()) {
    return absl::NotFoundError(
        absl::StrCat("there is no '", PathOf(file), "' in this program"));
  }
  return MappedFile::OfMemory(PathOf(file), entry->bytes);
}

absl::StatusOr<json> ModelFiles::ReadJson(std::string_view file) const {
  FOLIO_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> opened,
                         Open(file));
  return ParseJson(*opened);
}

absl::StatusOr<TensorTable> ModelFiles::ReadTensors() const {
  if (Has(kSingleFile)) {
    FOLIO_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file,
                           Open(kSingleFile));
    return ReadSafetensors(std::move(file));
  }
  const std::string index_path = PathOf(kIndexFile);
  if (!Has(kIndexFile)) {
    return absl::NotFoundError(
        absl::StrCat("there is neither '", PathOf(kSingleFile), "' nor '",
                     index_path, "'; a model needs one of them"));
  }
  FOLIO_ASSIGN_OR_RETURN(const json index, ReadJson(kIndexFile));
  FOLIO_ASSIGN_OR_RETURN(const NameMap shard_of, ParseIndex(index, index_path));
  std::set<std::string_view> shards;
  for (const auto& [tensor, shard] : shard_of) shards.insert(shard);
  ShardMerger merger(shard_of, index_path);
  for (const std::string_view shard : shards) {
    FOLIO_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, Open(shard));
    const std::string path = file->path();
    FOLIO_ASSIGN_OR_RETURN(TensorTable table, ReadSafetensors(std::move(file)));
    FOLIO_RETURN_IF_ERROR(
        merger.Add(std::string(shard), path, std::move(table)));
  }
  return std::move(merger).Finish();
}

}  // namespace folio
