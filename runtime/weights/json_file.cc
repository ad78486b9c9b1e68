#include "runtime/weights/json_file.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/mapped_file.h"
#include "runtime/weights/shown.h"

namespace folio {
namespace {

using nlohmann::json;

// Builds the document from the parser's events. The library's own builder keeps
// the last of two equal keys, and has no limit on depth; each `false` here
// stops the parser at once.
class Builder final : public nlohmann::json_sax<json> {
 public:
  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(int64_t value) override { return Add(value); }
  bool number_unsigned(uint64_t value) override { return Add(value); }
  bool number_float(double value, const std::string& /*text*/) override {
    return Add(value);
  }
  bool string(std::string& value) override { return Add(std::move(value)); }
  bool binary(json::binary_t& value) override { return Add(std::move(value)); }

  bool start_object(size_t /*size*/) override { return Open(json::object()); }
  bool start_array(size_t /*size*/) override { return Open(json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(std::string& key) override {
    auto& object = open_.back()->get_ref<json::object_t&>();
    const auto [it, is_new] = object.try_emplace(key);
    if (!is_new) {
      complaint_ =
          absl::StrCat("an object has the key \"", Printable(key), "\" twice");
      return false;
    }
    member_ = &it->second;
    return true;
  }

  bool parse_error(size_t byte, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    std::string_view what = error.what();
    // Without the library's "[json.exception.parse_error.101] ".
    if (const size_t end = what.find("] "); end != what.npos) {
      what.remove_prefix(end + 2);
    }
    complaint_ = absl::StrCat("byte ", byte, ": ", Printable(what));
    return false;
  }

  json& document() { return document_; }
  const std::string& complaint() const { return complaint_; }

 private:
  // Puts a value where the parser stands, and returns where it lies now.
  json* Place(json value) {
    if (open_.empty()) {
      document_ = std::move(value);
      return &document_;
    }
    if (open_.back()->is_array()) {
      return &open_.back()->get_ref<json::array_t&>().emplace_back(
          std::move(value));
    }
    *member_ = std::move(value);
    return member_;
  }

  bool Add(json value) {
    Place(std::move(value));
    return true;
  }

  bool Open(json container) {
    if (open_.size() == kMaxJsonDepth) {
      complaint_ = absl::StrCat("arrays and objects are nested more than ",
                                kMaxJsonDepth, " levels deep");
      return false;
    }
    open_.push_back(Place(std::move(container)));
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  json document_;
  // The arrays and objects around the parser's place, outermost first. A parent
  // gets no new element while one of its children is open, so they stay put.
  std::vector<json*> open_;
  json* member_ = nullptr;  // The value of the last key.
  std::string complaint_;
};

}  // namespace

absl::StatusOr<json> ParseJson(std::string_view text, std::string_view name) {
  Builder builder;
  if (!json::sax_parse(text, &builder)) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(name), ": ", builder.complaint()));
  }
  return std::move(builder.document());
}

absl::StatusOr<json> ParseJson(const MappedFile& file) {
  const std::string name = absl::StrCat("'", file.path(), "'");
  const int64_t size = static_cast<int64_t>(file.bytes().size());
  if (size > kMaxJsonFileBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has ", size, " bytes; a JSON file may have ",
                     kMaxJsonFileBytes));
  }
  return ParseJson(file.text(), name);
}

absl::StatusOr<json> ReadJsonFile(const std::string& path) {
  FOLIO_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file,
                         MappedFile::Open(path));
  return ParseJson(*file);
}

std::string ShownJson(const json& value) {
  constexpr size_t kMaxShown = 80;
  std::string text = value.dump(/*indent=*/-1, ' ', /*ensure_ascii=*/true);
  if (text.size() > kMaxShown) text = text.substr(0, kMaxShown) + "...";
  return text;
}

}  // namespace folio
