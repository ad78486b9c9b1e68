// Writes safetensors files.

#ifndef TESTS_SUPPORT_SAFETENSORS_BUILDER_H_
#define TESTS_SUPPORT_SAFETENSORS_BUILDER_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace folio {

// A file with this header, whatever it says, and this data.
std::string SafetensorsOf(std::string_view header, std::string_view data);

// The tensors' data is in the order in which they are added.
class SafetensorsBuilder {
 public:
  // `dtype` is the format's name ("BF16"), `bytes` the tensor's data.
  SafetensorsBuilder& Add(std::string_view name, std::string_view dtype,
                          const std::vector<int64_t>& shape,
                          std::string_view bytes);
  SafetensorsBuilder& AddF32(std::string_view name,
                             const std::vector<int64_t>& shape,
                             const std::vector<float>& values);

  std::string Build() const;

 private:
  nlohmann::json header_ = nlohmann::json::object();
  std::string data_;
};

}  // namespace folio

#endif  // TESTS_SUPPORT_SAFETENSORS_BUILDER_H_
