// Writes models in the GGUF format.

#ifndef RUNTIME_WEIGHTS_GGUF_WRITER_H_
#define RUNTIME_WEIGHTS_GGUF_WRITER_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "runtime/weights/tensor_table.h"

namespace folio {

// Gathers what a file says, and writes it: version 3 of the format that gguf.h
// describes, with the default alignment. Entries and tensors are in the order
// in which they were added.
class GgufWriter {
 public:
  // Elements [first, first + out.size()) of a tensor, row-major.
  using ReadTensor = absl::FunctionRef<void(
      const std::string& name, int64_t first, std::span<float> out)>;

  void Add(std::string_view key, std::string_view value);
  void Add(std::string_view key, uint32_t value);
  void Add(std::string_view key, float value);

  // REQUIRES: CanWrite(dtype); the shape, outermost dimension first, has at
  // least one and at most four dimensions, and its rows are whole blocks.
  void AddTensor(const std::string& name, DType dtype,
                 const std::vector<int64_t>& shape);

  // Writes the file, reading each tensor once, some whole rows at a time:
  // beside it, under a name that ends in ".partial", and then in its place. So
  // the file may be the one that is read, and one that is there stays as it is
  // when writing fails, with the status of the system, naming the path.
  absl::Status Write(const std::string& path, ReadTensor read) const;

 private:
  struct Tensor {
    std::string name;
    DType dtype;
    int64_t elements;
    int64_t row_elements;
    uint64_t offset;  // Into the data.
  };

  std::string Header() const;
  absl::Status WriteTo(const std::string& path, ReadTensor read) const;

  uint64_t num_entries_ = 0;
  std::string entries_;  // As they are in the file.
  std::string descriptions_;
  std::vector<Tensor> tensors_;
  uint64_t data_bytes_ = 0;
};

}  // namespace folio

#endif  // RUNTIME_WEIGHTS_GGUF_WRITER_H_
