#include "tests/support/malformed_gguf.h"

#include <cstdint>
#include <string_view>
#include <utility>

#include "tests/support/bytes.h"
#include "tests/support/gguf_builder.h"

namespace folio {
namespace {

constexpr uint32_t kUint32 = 4;
constexpr uint32_t kBool = 7;
constexpr uint32_t kString = 8;
constexpr uint32_t kArray = 9;
constexpr uint32_t kF32 = 0;
constexpr uint32_t kQ4_0 = 2;
constexpr uint32_t kQ6_K = 14;
constexpr uint64_t kMinusOne = ~uint64_t{0};

std::string Head(uint32_t version, uint64_t num_tensors, uint64_t num_entries) {
  return "GGUF" + BytesOf(version) + BytesOf(num_tensors) +
         BytesOf(num_entries);
}

std::string BigEndian(uint32_t number) {
  const std::string bytes = BytesOf(number);
  return {bytes.rbegin(), bytes.rend()};
}

std::vector<MalformedGguf> Headers() {
  const std::string rest(100, '\0');
  return {
      {"empty", "", {"the first word", "4 bytes at offset 0", "has only 0"}},
      {"bad magic", "GGML" + rest, {"begins with 'GGML'", "'GGUF'"}},
      {"bytes for magic",
       std::string("\x7F\0EL", 4) + rest,
       {"begins with '\\x7f\\x00EL'"}},
      {"version 0", Head(0, 0, 0), {"version 0;", "versions 2 and 3"}},
      {"version 1", Head(1, 0, 0), {"version 1;", "versions 2 and 3"}},
      {"version 4", Head(4, 0, 0), {"version 4;", "versions 2 and 3"}},
      {"version -1", Head(~0u, 0, 0), {"version 4294967295;"}},
      {"big-endian",
       "GGUF" + BigEndian(3) + rest,
       {"big-endian", "version 3", "little-endian"}},
      {"-1 tensors",
       Head(3, kMinusOne, 0) + rest,
       {"claims 18446744073709551615 tensors", "has only 100"}},
      {"-1 entries",
       Head(3, 0, kMinusOne) + rest,
       {"claims 18446744073709551615 metadata entries", "has only 100"}},
      {"one tensor too many for the bytes",
       Head(3, 4, 0) + rest,
       {"claims 4 tensors", "at least 32 bytes", "has only 100"}},
      {"one entry too many for the bytes",
       Head(3, 0, 8) + rest,
       {"claims 8 metadata entries", "at least 13 bytes", "has only 100"}},
  };
}

std::vector<MalformedGguf> Keys() {
  const std::string rest(30, '\0');
  const auto with_key = [&](uint64_t length) {
    return Head(3, 0, 1) + BytesOf(length) + "abc" + rest;
  };
  const auto with_string = [&](uint64_t length) {
    return Head(3, 0, 1) + GgufString("a.key") + BytesOf(kString) +
           BytesOf(length) + "abc" + rest;
  };
  return {
      {"key past the end",
       with_key(34),
       {"the key of metadata entry 0 takes 34 bytes at offset 32",
        "has only 33"}},
      {"key of -1 bytes",
       with_key(kMinusOne),
       {"entry 0 takes 18446744073709551615 bytes"}},
      {"duplicate key",
       GgufBuilder().Add("a.key", 1.5f).Add("b", true).Add("a.key", 2).Build(),
       {"the key 'a.key' is there twice"}},
      {"string past the end",
       with_string(34),
       {"key 'a.key': string 0 takes 34 bytes", "has only 33"}},
      {"string of -1 bytes",
       with_string(kMinusOne),
       {"key 'a.key': string 0 takes 18446744073709551615 bytes"}},
      {"a key that is no text",
       GgufBuilder().AddRaw("a\n\xFF'", 99, "").Build(),
       {"key 'a\\x0a\\xff'': the type is 99"}},
      {"a key too long to print",
       GgufBuilder().AddRaw(std::string(60'000, 'k'), 99, "").Build(),
       {"key '" + std::string(200, 'k') + "...': the type is 99"}},
  };
}

std::string Array(uint32_t element_type, uint64_t count,
                  std::string_view elements) {
  return BytesOf(element_type) + BytesOf(count) + std::string(elements);
}

std::vector<MalformedGguf> Values() {
  const auto with = [](uint32_t type, std::string_view bytes) {
    return GgufBuilder().AddRaw("a.key", type, bytes).Build();
  };
  return {
      {"type 13", with(13, "12345678"), {"'a.key': the type is 13", "0 to 12"}},
      {"type -1", with(~0u, "12345678"), {"the type is 4294967295"}},
      {"number cut",
       with(kUint32, "123"),
       {"key 'a.key': its value takes 4 bytes", "has only 3"}},
      {"bool of 2", with(kBool, "\x02"), {"'a.key': a bool is 2", "0 or 1"}},
      {"array of bools with a 255",
       with(kArray, Array(kBool, 3, std::string_view("\x01\x00\xFF", 3))),
       {"'a.key': a bool is 255"}},
      {"array of arrays",
       with(kArray, Array(kArray, 1, Array(kUint32, 1, "1234"))),
       {"'a.key': it is an array of arrays", "supported"}},
      {"array of type 77",
       with(kArray, Array(77, 1, "1234")),
       {"'a.key': the array's elements: the type is 77"}},
      {"array cut in its head",
       with(kArray, BytesOf(kUint32) + "123"),
       {"'a.key': the array's length takes 8 bytes", "has only 3"}},
      {"array longer than the file",
       with(kArray, Array(kUint32, 3, "12345678abc")),
       {"'a.key': the array claims 3 elements of at least 4", "has only 11"}},
      {"array of -1 bytes",
       with(kArray, Array(0, kMinusOne, "1234")),
       {"'a.key': the array claims 18446744073709551615 elements"}},
      {"array whose size wraps to 4",
       with(kArray, Array(kUint32, (uint64_t{1} << 62) + 1, "1234")),
       {"'a.key': the array claims 4611686018427387905 elements"}},
      {"strings more than the file can have",
       with(kArray, Array(kString, 3, std::string(23, '\0'))),
       {"'a.key': the array claims 3 elements of at least 8", "has only 23"}},
      {"second string past the end",
       with(kArray, Array(kString, 2, GgufString("ab") + GgufString("cd"))
                        .substr(0, 12 + 10 + 9)),
       {"'a.key': string 1 takes 2 bytes", "has only 1"}},
  };
}

std::vector<MalformedGguf> Alignments() {
  std::vector<MalformedGguf> files;
  for (const uint32_t bad : {0u, 1u, 4u, 13u, 24u, 0xFFFFFFFFu}) {
    files.push_back(
        {"alignment " + std::to_string(bad),
         GgufBuilder().Add("general.alignment", bad).Build(),
         {"key 'general.alignment': found " + std::to_string(bad) + ";",
          "power of two of at least 8"}});
  }
  files.push_back({"alignment as a string",
                   GgufBuilder().Add("general.alignment", "32").Build(),
                   {"'general.alignment': found string; expected u32"}});
  // The data would begin past the end.
  files.push_back({"alignment larger than the file",
                   GgufBuilder()
                       .Add("general.alignment", 0x80000000u)
                       .AddRawTensor("t", {1}, kF32, 0)
                       .AddData("1234")
                       .Build(),
                   {"'t': it takes 4 bytes at offset 0", "has 0 bytes"}});
  return files;
}

// A file with one tensor, of that description, and `data_bytes` of data.
std::string OneTensor(const std::vector<uint64_t>& dimensions, uint32_t type,
                      uint64_t offset, size_t data_bytes) {
  return GgufBuilder()
      .AddRawTensor("a.weight", dimensions, type, offset)
      .AddData(std::string(data_bytes, 'd'))
      .Build();
}

std::vector<MalformedGguf> Shapes() {
  constexpr uint64_t k2To32 = uint64_t{1} << 32;
  constexpr uint64_t k2To62 = uint64_t{1} << 62;
  return {
      {"0 dimensions",
       OneTensor({}, kF32, 0, 64),
       {"'a.weight': it has 0 dimensions", "1 to 4"}},
      {"5 dimensions",
       OneTensor({1, 1, 1, 1, 1}, kF32, 0, 64),
       {"'a.weight': it has 5 dimensions", "1 to 4"}},
      {"a dimension of 0",
       OneTensor({4, 0}, kF32, 0, 64),
       {"'a.weight': the shape is [4, 0]", "at least 1"}},
      {"a dimension of -1",
       OneTensor({kMinusOne}, kF32, 0, 64),
       {"'a.weight': the shape is [18446744073709551615]", "2^63"}},
      {"two dimensions of -1",
       OneTensor({kMinusOne, kMinusOne}, kF32, 0, 64),
       {"'a.weight': the shape is [18446744073709551615, 184467440737"}},
      {"elements wrap to 0",
       OneTensor({k2To32, k2To32}, kF32, 0, 64),
       {"'a.weight': the shape is [4294967296, 4294967296]", "2^63"}},
      {"elements wrap to 4 in four dimensions",
       OneTensor({k2To32, k2To32, k2To32, 4}, kF32, 0, 64),
       {"'a.weight'", "more than 2^63 bytes"}},
      {"bytes wrap to 4",
       OneTensor({k2To62 + 1}, kF32, 0, 64),
       {"'a.weight': the shape is [4611686018427387905]", "2^63"}},
      {"bytes of blocks wrap",
       OneTensor({k2To62, 1}, kQ4_0, 0, 64),
       {"'a.weight': the shape is [4611686018427387904, 1]", "2^63"}},
      {"a row of 48 in blocks of 32",
       OneTensor({48, 2}, kQ4_0, 0, 128),
       {"'a.weight': a row has 48 elements", "Q4_0", "blocks of 32"}},
      {"a row of 32 in blocks of 256",
       OneTensor({32, 8}, kQ6_K, 0, 256),
       {"'a.weight': a row has 32 elements", "Q6_K", "blocks of 256"}},
      {"type 42",
       OneTensor({4}, 42, 0, 64),
       {"'a.weight': the type is 42", "0 to 41"}},
      {"type -1",
       OneTensor({4}, ~0u, 0, 64),
       {"'a.weight': the type is 4294967295"}},
      {"an unread type with a shape that wraps",
       OneTensor({k2To32, k2To32}, 16, 0, 64),
       {"'a.weight'", "2^63"}},
  };
}

std::vector<MalformedGguf> Places() {
  const std::string data(128, 'd');
  const auto two = [&](uint64_t second_offset) {
    return GgufBuilder()
        .AddRawTensor("first", {9}, kF32, 0)
        .AddRawTensor("second", {8}, kF32, second_offset)
        .AddData(data)
        .Build();
  };
  return {
      {"offset unaligned",
       OneTensor({4}, kF32, 8, 64),
       {"'a.weight': its offset is 8", "a multiple of 32"}},
      {"offset unaligned for an alignment of 64",
       GgufBuilder()
           .SetAlignment(64)
           .AddRawTensor("a.weight", {4}, kF32, 32)
           .AddData(data)
           .Build(),
       {"'a.weight': its offset is 32", "a multiple of 64"}},
      {"offset past the end",
       OneTensor({4}, kF32, 96, 64),
       {"'a.weight': it takes 16 bytes at offset 96", "has 64 bytes"}},
      {"offset of -32",
       OneTensor({4}, kF32, kMinusOne - 31, 64),
       {"'a.weight': it takes 16 bytes at offset 18446744073709551584"}},
      {"end past the end by one",
       OneTensor({4}, kF32, 0, 15),
       {"'a.weight': it takes 16 bytes at offset 0", "has 15 bytes"}},
      {"block past the end by one",
       OneTensor({32}, kQ4_0, 0, 17),
       {"'a.weight': it takes 18 bytes at offset 0", "has 17 bytes"}},
      {"no data at all",
       OneTensor({4}, kF32, 0, 0),
       {"'a.weight': it takes 16 bytes at offset 0", "has 0 bytes"}},
      {"an unread type past the end",
       OneTensor({4}, 16, 96, 64),
       {"'a.weight': it takes 0 bytes at offset 96", "has 64 bytes"}},
      {"overlap",
       two(32),
       {"'second': it begins at offset 32, inside the tensor 'first'",
        "ends at 36"}},
      {"same place", two(0), {"at offset 0, inside the tensor"}},
      {"duplicate tensor",
       GgufBuilder()
           .AddF32("twin", {2}, {1, 2})
           .AddF32("other", {1}, {1})
           .AddF32("twin", {1}, {1})
           .Build(),
       {"tensor 'twin': it is there twice"}},
      {"tensor name past the end",
       Head(3, 1, 0) + BytesOf(uint64_t{200}) + std::string(60, 'n'),
       {"the name of tensor 0 takes 200 bytes", "has only 60"}},
  };
}

}  // namespace

std::vector<MalformedGguf> MalformedGgufs() {
  std::vector<MalformedGguf> all;
  for (auto* part : {&Headers, &Keys, &Values, &Alignments, &Shapes, &Places}) {
    for (MalformedGguf& file : part()) all.push_back(std::move(file));
  }
  return all;
}

std::string SmallGguf() {
  return GgufBuilder()
      .Add("general.architecture", "llama")
      .Add("u8", uint8_t{200})
      .Add("i8", int8_t{-100})
      .Add("u16", uint16_t{60'000})
      .Add("i16", int16_t{-30'000})
      .Add("u32", uint32_t{4'000'000'000})
      .Add("i32", int32_t{-2'000'000'000})
      .Add("u64", uint64_t{1} << 63)
      .Add("i64", int64_t{-1} << 63)
      .Add("f32", 0.1f)
      .Add("f64", 0.1)
      .Add("yes", true)
      .Add("no", false)
      .AddArray<std::string>("strings", {"one", "", "thr\xFF"})
      .AddArray<int32_t>("integers", {1, -2, 3})
      .AddArray<float>("floats", {1.5f, -2.0f})
      .AddArray<bool>("bools", {true, false})
      .AddArray<uint32_t>("nothing", {})
      .AddF32("norm", {3}, {1, 2, 3})
      .AddTensor("bf16", DType::kBF16, {2, 1}, "\x80\x3F\x40\x40")
      .AddTensor("q4_0", DType::kQ4_0, {2, 32}, std::string(36, '\x3C'))
      .AddTensor("q6_K", DType::kQ6_K, {1, 256}, std::string(210, '\x31'))
      .AddRawTensor("mask", {5}, /*I8*/ 24, 352)
      .AddData(std::string(14, '\0') + "12345")  // At 352: 338 are before.
      .Build();
}

}  // namespace folio
