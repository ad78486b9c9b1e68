#include "runtime/tokenizer/pattern.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/tokenizer/code_points.h"
#include "runtime/tokenizer/oniguruma_syntax.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace folio {
namespace {

// Longer patterns than any tokenizer has.
constexpr size_t kMaxPatternBytes = 1 << 16;

// One match may take this many steps of backtracking at least, and this many
// for each byte of the text. Matching an ordinary pattern takes about one.
constexpr uint64_t kMinSteps = 10'000'000;
constexpr uint64_t kStepsPerByte = 64;

// The same for memory, which matters only when the machine code's stack is too
// small and PCRE2 interprets the pattern on the heap.
constexpr uint64_t kMinHeapKiB = 64 << 10;
constexpr uint64_t kHeapKiBPerByte = 1;

uint32_t Limit(uint64_t least, uint64_t per_byte, size_t num_bytes) {
  return static_cast<uint32_t>(
      std::min<uint64_t>(std::max(least, per_byte * num_bytes),
                         std::numeric_limits<uint32_t>::max()));
}

PCRE2_SPTR Units(std::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

std::string ErrorText(int code) {
  PCRE2_UCHAR buffer[256];
  const int length = pcre2_get_error_message(code, buffer, std::size(buffer));
  return length < 0
             ? absl::StrCat("error ", code)
             : std::string(reinterpret_cast<const char*>(buffer), length);
}

// What a thread needs to match any pattern. Matches of one thread that run
// inside one another share it, as each is read before the next begins.
struct MatchState {
  MatchState()
      : data(pcre2_match_data_create(1, nullptr)),
        context(pcre2_match_context_create(nullptr)) {
    CHECK(data != nullptr && context != nullptr) << "out of memory";
  }
  ~MatchState() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
  }
  MatchState(const MatchState&) = delete;
  MatchState& operator=(const MatchState&) = delete;

  pcre2_match_data* const data;
  pcre2_match_context* const context;
};

MatchState& ThreadMatchState() {
  static thread_local MatchState state;
  return state;
}

}  // namespace

struct Pattern::Code {
  Code(pcre2_code* compiled_code, bool is_native_code)
      : compiled(compiled_code), is_native(is_native_code) {}
  ~Code() { pcre2_code_free(compiled); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  static absl::StatusOr<std::unique_ptr<Code>> Compile(std::string_view regex,
                                                       uint32_t options) {
    if (regex.size() > kMaxPatternBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("a pattern of ", regex.size(), " bytes; ",
                       kMaxPatternBytes, " are supported"));
    }
    const std::unique_ptr<pcre2_compile_context,
                          decltype(&pcre2_compile_context_free)>
        context(pcre2_compile_context_create(nullptr),
                &pcre2_compile_context_free);
    CHECK(context != nullptr) << "out of memory";
    pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
    int error = 0;
    PCRE2_SIZE offset = 0;
    pcre2_code* const compiled =
        pcre2_compile(Units(regex), regex.size(), options | PCRE2_UTF, &error,
                      &offset, context.get());
    if (compiled == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(ErrorText(error), " (after '",
                       std::string(regex.substr(0, offset)), "')"));
    }
    const bool is_native = pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE) == 0;
    return std::make_unique<Code>(compiled, is_native);
  }

  // PCRE2's return code for the first match in `text` from `from` on; positive
  // when there is one, which is in `state` then.
  int Match(std::string_view text, size_t from, const MatchState& state) const {
    pcre2_set_match_limit(state.context,
                          Limit(kMinSteps, kStepsPerByte, text.size()));
    pcre2_set_heap_limit(state.context,
                         Limit(kMinHeapKiB, kHeapKiBPerByte, text.size()));
    if (is_native) {
      const int result =
          pcre2_jit_match(compiled, Units(text), text.size(), from,
                          /*options=*/0, state.data, state.context);
      if (result != PCRE2_ERROR_JIT_STACKLIMIT) return result;
    }
    return pcre2_match(compiled, Units(text), text.size(), from,
                       PCRE2_NO_JIT | PCRE2_NO_UTF_CHECK, state.data,
                       state.context);
  }

  pcre2_code* const compiled;
  const bool is_native;
};

Pattern::Pattern(std::unique_ptr<Code> code, std::string source)
    : code_(std::move(code)), source_(std::move(source)) {}
Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;

absl::StatusOr<Pattern> Pattern::Compile(std::string_view regex) {
  const auto compile = [&]() -> absl::StatusOr<std::unique_ptr<Code>> {
    FOLIO_ASSIGN_OR_RETURN(const std::string translated,
                           TranslateOniguruma(regex));
    return Code::Compile(translated,
                         PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C);
  };
  absl::StatusOr<std::unique_ptr<Code>> code = compile();
  if (!code.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the pattern \"", std::string(regex),
                     "\": ", std::string(code.status().message())));
  }
  return Pattern(*std::move(code), std::string(regex));
}

absl::StatusOr<Pattern> Pattern::Literal(std::string_view text) {
  if (text.empty()) {
    return absl::InvalidArgumentError("the text to look for is empty");
  }
  FOLIO_ASSIGN_OR_RETURN(std::unique_ptr<Code> code,
                         Code::Compile(text, PCRE2_LITERAL));
  return Pattern(std::move(code), std::string(text));
}

absl::Status Pattern::ForEachMatch(std::string_view text, Visitor visit) const {
  const MatchState& state = ThreadMatchState();
  size_t from = 0;
  while (from <= text.size()) {
    const int result = code_->Match(text, from, state);
    if (result == PCRE2_ERROR_NOMATCH) break;
    if (result < 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("matching the pattern \"", source_, "\" from byte ",
                       from, " on: ", ErrorText(result)));
    }
    const PCRE2_SIZE* const offsets = pcre2_get_ovector_pointer(state.data);
    const size_t begin = offsets[0];
    const size_t end = offsets[1];
    FOLIO_RETURN_IF_ERROR(visit(begin, end));
    from = end;
    if (begin == end) {
      if (end == text.size()) break;
      from += FrontCodePoint(text.substr(end)).length;
    }
  }
  return absl::OkStatus();
}

}  // namespace folio
