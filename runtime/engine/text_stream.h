// What a client sees of one sample: its tokens with their text.

#ifndef RUNTIME_ENGINE_TEXT_STREAM_H_
#define RUNTIME_ENGINE_TEXT_STREAM_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/types.h"
#include "runtime/engine/stop_strings.h"
#include "runtime/tokenizer/detokenizer.h"
#include "runtime/tokenizer/tokenizer.h"
#include "scheduler/token_event.h"

namespace folio {

// Without stop strings, tokens pass as they come, and text as soon as its
// characters are complete. With them, text that may be the start of one is held
// back, and so is each token until all of its text has passed; what a stop
// string cuts off never does.
//
// A token is first appended, which says whether it ends the sample, and later
// passes through Complete in an event. Used by the engine thread.
class TextStream {
 public:
  // `tokenizer` must outlive the stream. `stop_strings` may be null.
  TextStream(const Tokenizer* tokenizer,
             std::shared_ptr<const StopStrings> stop_strings,
             bool include_stop);

  // Returns whether the token's text completes a stop string; with `may_stop`
  // false it does not count.
  bool Append(TokenId token, bool may_stop);

  // Gives an event of the sample its text, and takes from it the tokens that
  // have to wait. With a finish reason, nothing waits any longer.
  // REQUIRES: the event's sampled tokens were appended; events come in order.
  void Complete(TokenEvent& event);

 private:
  // Tokens and text that are held back. Positions count bytes of the whole
  // text.
  struct Held {
    explicit Held(std::shared_ptr<const StopStrings> stop_strings)
        : strings(std::move(stop_strings)), matcher(strings.get()) {}

    // What may pass: text before `position`, and tokens that end by then.
    void PassUntil(size_t position, TokenEvent& event);

    const std::shared_ptr<const StopStrings> strings;
    StopMatcher matcher;
    std::string text;
    size_t text_start = 0;
    ScoredTokens tokens;
    // Where the text of each appended token ends that has not passed yet;
    // kUnknown while its last character is not complete.
    std::vector<size_t> ends;
    std::optional<size_t> cut;  // Nothing behind it ever passes.
    const std::string* stop = nullptr;
  };
  static constexpr size_t kUnknown = ~size_t{0};

  bool Hold(bool may_stop);

  Detokenizer detokenizer_;
  const bool include_stop_;
  std::string ready_;           // Text that no event has had yet.
  std::unique_ptr<Held> held_;  // Null: no stop strings.
};

}  // namespace folio

#endif  // RUNTIME_ENGINE_TEXT_STREAM_H_
