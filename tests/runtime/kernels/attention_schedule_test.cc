#include "runtime/kernels/attention_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "runtime/kernels/attention_tile.h"

namespace folio {
namespace {

// (Row of the batch, KV head, span).
using Share = std::tuple<int32_t, int32_t, int32_t>;

struct Plan {
  AttentionShape shape;
  std::optional<int32_t> window;
  int32_t max_lines;
  int num_workers;
  std::vector<AttentionSequence> sequences;
};

int32_t NumRows(const Plan& plan) {
  int32_t rows = 0;
  for (const AttentionSequence& s : plan.sequences) {
    rows = std::max(rows, s.first_row + s.num_rows);
  }
  return rows;
}

// What rows need, by the definition: each span that has a position they see.
std::set<Share> Needed(const Plan& plan) {
  std::set<Share> needed;
  for (const AttentionSequence& s : plan.sequences) {
    for (int32_t r = 0; r < s.num_rows; ++r) {
      const int32_t position = s.first_position + r;
      for (int32_t seen = 0; seen <= position; ++seen) {
        if (plan.window.has_value() && seen <= position - *plan.window)
          continue;
        for (int32_t h = 0; h < plan.shape.num_kv_heads; ++h) {
          needed.emplace(s.first_row + r, h, seen / kAttentionSpan);
        }
      }
    }
  }
  return needed;
}

// Checks that each share is done by one piece, that parts have lines of their
// own, and that merging finds them in ascending order. Returns how many pieces
// have lines.
int CheckPlan(const Plan& plan) {
  AttentionSchedule schedule(plan.shape, plan.window, NumRows(plan),
                             plan.max_lines, plan.num_workers);
  schedule.Plan(plan.sequences);
  const int32_t group = plan.shape.num_heads / plan.shape.num_kv_heads;
  std::set<Share> done;
  std::map<int32_t, Share> lines;
  int num_split = 0;
  for (int32_t t = 0; t < schedule.num_tasks(); ++t) {
    EXPECT_FALSE(schedule.task(t).empty());
    for (const AttentionPiece& piece : schedule.task(t)) {
      EXPECT_LE(piece.num_rows * group,
                std::max(group, schedule.max_tile_lines()));
      if (piece.first_line >= 0) {
        ++num_split;
        EXPECT_EQ(piece.end_span, piece.first_span + 1);
      }
      for (int32_t r = 0; r < piece.num_rows; ++r) {
        const int32_t row = piece.sequence->first_row + piece.first_row + r;
        for (int32_t span = piece.first_span; span < piece.end_span; ++span) {
          const Share share(row, piece.kv_head, span);
          EXPECT_TRUE(done.insert(share).second);
          for (int32_t g = 0; piece.first_line >= 0 && g < group; ++g) {
            const int32_t line = piece.first_line + r * group + g;
            EXPECT_LT(line, plan.max_lines);
            EXPECT_TRUE(lines.emplace(line, share).second);
          }
        }
      }
    }
  }
  const std::set<Share> needed = Needed(plan);
  EXPECT_TRUE(
      std::includes(done.begin(), done.end(), needed.begin(), needed.end()));
  std::set<int32_t> rows;
  for (const AttentionSequence& s : plan.sequences) {
    for (int32_t r = 0; r < s.num_rows; ++r) rows.insert(s.first_row + r);
  }
  size_t num_merged = 0;
  for (const int32_t row : rows) {
    for (int32_t h = 0; h < plan.shape.num_kv_heads; ++h) {
      const SpanParts& parts = schedule.span_parts(row, h);
      int32_t last_span = -1;
      for (int32_t i = 0; i < parts.count; ++i, num_merged += group) {
        const auto [line_row, head, span] =
            lines.at(parts.first_line + i * parts.stride);
        EXPECT_EQ(line_row, row);
        EXPECT_EQ(head, h);
        EXPECT_GT(span, last_span);
        last_span = span;
      }
    }
  }
  EXPECT_EQ(num_merged, lines.size());
  return num_split;
}

TEST(AttentionScheduleTest, SplitsOneLongSequence) {
  // 3 KV heads of 4 spans: three of each are pieces of their own.
  const Plan plan{{9, 3, 64}, {}, 1000, 2, {{0, 1, 2047, {}}}};
  EXPECT_EQ(CheckPlan(plan), 9);
}

TEST(AttentionScheduleTest, OneWorkerSplitsNothing) {
  EXPECT_EQ(CheckPlan({{9, 3, 64}, {}, 1000, 1, {{0, 1, 2047, {}}}}), 0);
}

TEST(AttentionScheduleTest, ManySequencesNeedNoSplitting) {
  Plan plan{{9, 3, 64}, {}, 1000, 2, {}};
  for (int32_t i = 0; i < 16; ++i) plan.sequences.push_back({i, 1, 1999, {}});
  EXPECT_EQ(CheckPlan(plan), 0);
}

TEST(AttentionScheduleTest, ALongSequenceIsSplitAmongMany) {
  Plan plan{{4, 1, 16}, {}, 1000, 2, {}};
  for (int32_t i = 0; i < 16; ++i) plan.sequences.push_back({i, 1, 99, {}});
  plan.sequences.push_back({16, 1, 5119, {}});
  EXPECT_EQ(CheckPlan(plan), 9);
}

TEST(AttentionScheduleTest, KeepsSpansTogetherWhereLinesRunOut) {
  // Each span of a head takes 3 lines: there is room for 7 spans, 3 of the
  // first head, 3 of the second and 1 of the last.
  EXPECT_EQ(CheckPlan({{9, 3, 64}, {}, 21, 2, {{0, 1, 2047, {}}}}), 7);
  EXPECT_EQ(CheckPlan({{9, 3, 64}, {}, 23, 2, {{0, 1, 2047, {}}}}), 7);
  EXPECT_EQ(CheckPlan({{9, 3, 64}, {}, 2, 2, {{0, 1, 2047, {}}}}), 0);
}

TEST(AttentionScheduleTest, CoversEveryRowOnceWhateverTheShape) {
  for (const AttentionShape& shape :
       {AttentionShape{9, 3, 64}, AttentionShape{4, 4, 8},
        AttentionShape{80, 1, 8}, AttentionShape{1, 1, 1}}) {
    for (const std::optional<int32_t> window :
         {std::optional<int32_t>(), {1}, {512}, {700}}) {
      for (const int num_workers : {1, 2, 7}) {
        for (const int32_t max_lines : {0, 100, 5000}) {
          CheckPlan({shape,
                     window,
                     max_lines,
                     num_workers,
                     {{0, 1, 1300, {}}, {1, 100, 480, {}}, {103, 7, 0, {}}}});
        }
      }
    }
  }
}

TEST(AttentionScheduleTest, NothingToDo) {
  AttentionSchedule schedule({1, 1, 1}, {}, 4, 10, 2);
  schedule.Plan({});
  EXPECT_EQ(schedule.num_tasks(), 0);
}

}  // namespace
}  // namespace folio
