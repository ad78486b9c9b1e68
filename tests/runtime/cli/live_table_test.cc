// The table that `folio memory --follow` draws.

#include "runtime/cli/live_table.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace folio {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::SizeIs;

void AddSequence(const std::string& name, int32_t pages, LiveState& state) {
  v1::SequenceMemory& sequence =
      *state.report.mutable_memory()->add_sequences();
  sequence.set_request_id(name);
  sequence.set_pages(pages);
}

// A pool of 100 pages of 1 KiB: 25 in use, 50 cached, 25 free.
LiveState AState() {
  LiveState state;
  state.server = "127.0.0.1:50051";
  state.report.set_step(7);
  v1::MemoryReport& memory = *state.report.mutable_memory();
  memory.set_page_size(16);
  memory.set_page_bytes(1024);
  memory.set_pool_bytes(100 << 10);
  memory.set_pages_total(100);
  memory.set_pages_free(25);
  memory.set_pages_in_use(25);
  memory.set_pages_cached(50);
  return state;
}

std::string TextOf(const LiveState& state, TerminalSize size = {40, 100}) {
  return absl::StrJoin(LiveTable(state, size), "\n");
}

TEST(LiveTable, DrawsAndNumbersTheParts) {
  // A bar of 40 cells has one for each 2.5 pages.
  const std::vector<std::string> lines =
      LiveTable(AState(), {.rows = 40, .columns = 43});
  EXPECT_THAT(lines,
              Contains("[" + std::string(10, '#') + std::string(20, '+') +
                       std::string(10, '.') + "]"));
  const std::string text = TextOf(AState());
  EXPECT_THAT(text, HasSubstr("100KiB = 100 pages of 16 tokens, 1KiB each"));
  EXPECT_THAT(text, testing::ContainsRegex(
                        "# in use +25 pages +25KiB +25.00%, 0.00% of it"));
  EXPECT_THAT(text, testing::ContainsRegex("\\+ cached +50 pages +50KiB +50"));
  EXPECT_THAT(text, testing::ContainsRegex("\\. free +25 pages +25KiB +25"));
}

TEST(LiveTable, TheBarIsFilledFromEdgeToEdge) {
  for (int32_t in_use = 0; in_use <= 100; ++in_use) {
    for (const int32_t cached : {0, 1, 100 - in_use}) {
      if (in_use + cached > 100) continue;
      LiveState state = AState();
      v1::MemoryReport& memory = *state.report.mutable_memory();
      memory.set_pages_in_use(in_use);
      memory.set_pages_cached(cached);
      const std::string bar = LiveTable(state, {.columns = 43})[3];
      EXPECT_THAT(bar, AllOf(SizeIs(42), MatchesRegex("\\[#*\\+*\\.*\\]")));
      // One page in use is seen; the last free one may be hidden.
      EXPECT_EQ(bar.find('#') != std::string::npos, in_use > 0) << in_use;
      if (in_use + cached < 100) continue;
      EXPECT_THAT(bar, Not(HasSubstr(".")));
    }
  }
}

TEST(LiveTable, FitsTheTerminal) {
  LiveState state = AState();
  for (int i = 0; i < 50; ++i) {
    // Characters of several bytes, and some that must not reach a terminal.
    AddSequence(absl::StrCat("\x1b[2J\n\u00e9\u00e9\u00e9 request ", i), i,
                state);
  }
  for (int rows = 0; rows < 80; ++rows) {
    for (const int columns : {1, 2, 40, 60, 200}) {
      const std::vector<std::string> lines = LiveTable(state, {rows, columns});
      EXPECT_LE(lines.size(), rows);
      for (const std::string& line : lines) {
        int characters = 0;
        for (const char byte : line) {
          const auto value = static_cast<unsigned char>(byte);
          EXPECT_TRUE(value >= 0x20 && value != 0x7f) << int{value};
          if ((value & 0xc0) != 0x80) ++characters;
        }
        EXPECT_LT(characters, std::max(columns, 1));
      }
    }
  }
}

TEST(LiveTable, SequencesWithTheMostPagesComeFirst) {
  LiveState state = AState();
  for (const int32_t pages : {3, 9, 1, 7, 5, 9}) {
    AddSequence(absl::StrCat("of ", pages), pages, state);
  }
  const size_t others = LiveTable(AState(), {40, 100}).size();
  const auto last = [&](int num_shown) {
    // With the sequences' own heading.
    const int rows = static_cast<int>(others) + 1 + num_shown;
    return LiveTable(state, {rows, 100}).back();
  };
  EXPECT_THAT(last(1), HasSubstr("  of 9"));
  EXPECT_THAT(last(2), HasSubstr("  of 9"));
  EXPECT_THAT(last(3), HasSubstr("  of 7"));
  EXPECT_THAT(last(6), HasSubstr("  of 1"));
  EXPECT_THAT(last(20), HasSubstr("  of 1"));
}

TEST(LiveTable, SaysWhatTheBatchWas) {
  LiveState state = AState();
  state.report.set_prefill_tokens(31);
  state.report.set_decode_tokens(4);
  state.report.set_sequences_running(5);
  EXPECT_THAT(TextOf(state),
              AllOf(HasSubstr("31 prefill + 4 decode tokens"),
                    HasSubstr("5 running, 0 waiting\n"),
                    HasSubstr("- predicted, - measured, - of it")));
  state.report.set_sequences_waiting(2);
  state.report.set_wait_reason(v1::WAIT_REASON_WATERMARK);
  state.report.mutable_predicted_duration()->set_nanos(12'000'000);
  state.report.mutable_commit_interval()->set_nanos(13'500'000);
  state.report.mutable_forward_duration()->set_nanos(11'000'000);
  EXPECT_THAT(
      TextOf(state),
      AllOf(HasSubstr("2 waiting, the next one held up by: watermark"),
            HasSubstr("12.0 ms predicted, 13.5 ms measured, 11.0 ms of it")));
}

TEST(LiveTable, CountsBatchesThatWereNotDrawn) {
  LiveState state = AState();
  for (const int32_t count : {1, 10}) {
    state.report.set_sequences_preempted(count);
    state.report.set_prefix_query_tokens(5 * count);
    state.report.set_prefix_hit_tokens(2 * count);
    state.report.set_pages_evicted(3 * count);
    state.report.set_pages_copied(4 * count);
    state.report.set_dropped_reports(count);
    state.totals.Add(state.report);
  }
  EXPECT_THAT(TextOf(state),
              AllOf(testing::ContainsRegex(
                        "in batch +10 +20 of 50 +30 +40\nwatched +11 +22 of "
                        "55 +33 +44\n"),
                    HasSubstr(", 11 reports dropped\n")));
}

TEST(LiveTable, SaysThatNothingHappens) {
  LiveState state = AState();
  state.age = absl::Milliseconds(999);
  EXPECT_THAT(TextOf(state), Not(HasSubstr("no batch")));
  state.age = absl::Milliseconds(75'300);
  EXPECT_THAT(TextOf(state), HasSubstr(", no batch for 75 s\n"));
}

}  // namespace
}  // namespace folio
