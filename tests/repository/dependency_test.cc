#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/repository/dependency_rules.h"
#include "tests/repository/source_tree.h"

namespace folio {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Repository, IncludesFollowTheTable) {
  const std::vector<SourceFile> files = ReadSourceTree(FOLIO_SOURCE_DIR);
  ASSERT_FALSE(files.empty());
  EXPECT_THAT(FindBadIncludes(Dependencies(), files), IsEmpty());
}

TEST(Repository, TheTableHasNoCycle) {
  EXPECT_THAT(FindCycle(Dependencies()), IsEmpty());
}

TEST(Repository, TheTableNamesOnlyItsOwnFolders) {
  for (const auto& [folder, allowed] : Dependencies()) {
    for (const Allowance& allowance : allowed) {
      EXPECT_TRUE(Dependencies().contains(allowance.folder)) << folder;
      EXPECT_NE(allowance.folder, folder);
    }
  }
}

// A made-up repository, to which a test adds one file.
std::vector<std::string> Complaints(const std::string& path,
                                    const std::string& text) {
  std::vector<SourceFile> files;
  for (const char* header :
       {"runtime/base/types.h", "runtime/kernels/sum.h",
        "runtime/model/model.h", "runtime/engine/engine.h",
        "runtime/server/server.h", "runtime/client/client.h",
        "scheduler/scheduler.h", "cache/kv_cache.h", "cache/kv_layout.h",
        "tests/support/fake.h", "proto/folio/v1/folio.proto",
        "runtime/folio.h"}) {
    files.push_back({header, ""});
  }
  files.push_back(
      {"runtime/kernels/product_ceiling.cc", "#include <dnnl.hpp>\n"});
  files.push_back({path, text});
  return FindBadIncludes(Dependencies(), files);
}

TEST(FindBadIncludes, AcceptsWhatTheTableAllows) {
  const struct {
    const char* path;
    const char* text;
  } kCases[] = {
      {"cache/a.cc",
       "#include <vector>\n#include \"absl/status/status.h\"\n"
       "#include \"runtime/base/types.h\"\n"
       "#include \"cache/kv_cache.h\"\n"},
      {"runtime/model/a.cc", "#include \"cache/kv_layout.h\"\n"},
      {"runtime/engine/a.h", "#include \"cache/kv_cache.h\"\n"},
      {"runtime/server/a.cc",
       "#include <grpcpp/grpcpp.h>\n"
       "#include \"google/protobuf/message.h\"\n"
       "#include \"folio/v1/folio.grpc.pb.h\"\n"
       "#include \"scheduler/scheduler.h\"\n"},
      {"runtime/client/a.cc", "#include \"proto/folio/v1/folio.pb.h\"\n"},
      {"runtime/folio.h", "#include \"runtime/engine/engine.h\"\n"},
      {"runtime/examples/a.cc", "#include \"runtime/folio.h\"\n"},
      {"bench/load/a.cc", "#include <grpcpp/grpcpp.h>\n"},
      {"bench/a.cc", "#include \"runtime/server/server.h\"\n"},
      {"runtime/kernels/linear.h", "// #include \"cache/nowhere.h\"\n"},
      {"tests/runtime/server/a.cc",
       "#include <grpcpp/grpcpp.h>\n"
       "#include \"tests/support/fake.h\"\n"
       "#include \"runtime/client/client.h\"\n"},
      {"README.md", "#include \"nowhere.h\"\n"},
  };
  for (const auto& [path, text] : kCases) {
    EXPECT_THAT(Complaints(path, text), IsEmpty()) << path;
  }
}

TEST(FindBadIncludes, FindsEachKindOfBadInclude) {
  const struct {
    const char* path;
    const char* text;
    const char* complaint;
  } kCases[] = {
      {"cache/a.cc", "\n#include \"scheduler/scheduler.h\"\n",
       "2: scheduler/scheduler.h may not be included from cache"},
      {"runtime/base/a.cc", "  #  include \"cache/kv_layout.h\" // why not\n",
       "1: cache/kv_layout.h may not be included from runtime/base"},
      {"runtime/model/a.cc", "#include \"cache/kv_cache.h\"\n",
       "1: cache/kv_cache.h may not be included from runtime/model"},
      {"scheduler/a.cc", "#include \"runtime/model/model.h\"\n",
       "1: runtime/model/model.h may not be included from scheduler"},
      {"runtime/client/a.cc", "#include \"runtime/server/server.h\"\n",
       "1: runtime/server/server.h may not be included from runtime/client"},
      {"runtime/engine/a.cc", "#include \"folio/v1/folio.pb.h\"\n",
       "1: folio/v1/folio.pb.h may not be included from runtime/engine"},
      {"runtime/engine/a.cc", "#include \"tests/support/fake.h\"\n",
       "1: tests/support/fake.h may not be included from runtime/engine"},
      {"runtime/engine/a.cc", "#include \"runtime/folio.h\"\n",
       "1: runtime/folio.h may not be included from runtime/engine"},
      {"runtime/folio.h", "#include \"runtime/server/server.h\"\n",
       "1: runtime/server/server.h may not be included from runtime/folio.h"},
      {"runtime/examples/a.cc", "#include \"runtime/engine/engine.h\"\n",
       "1: runtime/engine/engine.h may not be included from runtime/examples"},
      {"tests/support/a.cc", "#include \"runtime/server/server.h\"\n",
       "1: runtime/server/server.h may not be included from tests/support"},
      {"cache/a.cc", "#include \"kv_cache.h\"\n",
       "1: kv_cache.h does not exist; include ours by full path from the root"},
      {"cache/a.cc", "#include \"../cache/kv_cache.h\"\n",
       "1: ../cache/kv_cache.h does not exist; include ours by full path from "
       "the root"},
      {"tests/cache/a.cc", "#include \"cache/gone.h\"\n",
       "1: cache/gone.h does not exist; include ours by full path from the "
       "root"},
      {"runtime/server/a.cc", "#include \"folio/v1/gone.pb.h\"\n",
       "1: folio/v1/gone.pb.h does not exist; include ours by full path from "
       "the root"},
      {"cache/a.cc", "#include <cache/kv_cache.h>\n",
       "1: cache/kv_cache.h is ours: include it in quotes"},
      {"runtime/engine/a.cc", "#include <grpcpp/grpcpp.h>\n",
       "1: grpcpp/grpcpp.h belongs to gRPC and Protobuf, which stays in "
       "proto/, runtime/server/, runtime/client/, bench/load/, "
       "bench/service_overhead.cc"},
      {"scheduler/a.cc", "#include \"google/protobuf/message.h\"\n",
       "1: google/protobuf/message.h belongs to gRPC and Protobuf, which stays "
       "in proto/, runtime/server/, runtime/client/, bench/load/, "
       "bench/service_overhead.cc"},
      {"runtime/model/a.cc", "#include <oneapi/dnnl/dnnl.hpp>\n",
       "1: oneapi/dnnl/dnnl.hpp belongs to oneDNN, which stays in "
       "runtime/kernels/product_ceiling.cc"},
      {"runtime/kernels/second.cc", "#include <dnnl.h>\n",
       "1: dnnl.h belongs to oneDNN, which stays in "
       "runtime/kernels/product_ceiling.cc"},
      {"runtime/extra/a.cc", "",
       "1: its folder has no row in the table of dependencies"},
  };
  for (const auto& [path, text, complaint] : kCases) {
    EXPECT_THAT(Complaints(path, text),
                ElementsAre(absl::StrCat(path, ":", complaint)));
  }
}

TEST(FindCycle, FindsOne) {
  EXPECT_THAT(FindCycle({{"a", {{"b"}}}, {"b", {{"c"}}}, {"c", {}}}),
              IsEmpty());
  EXPECT_THAT(FindCycle({{"a", {{"b"}}}, {"b", {{"c"}}}, {"c", {{"b"}}}}),
              ElementsAre("b", "c", "b"));
  EXPECT_THAT(FindCycle({{"a", {{"a"}}}}), ElementsAre("a", "a"));
  // Two ways to one folder are none.
  EXPECT_THAT(FindCycle({{"a", {{"b"}, {"c"}}}, {"b", {{"c"}}}, {"c", {}}}),
              IsEmpty());
}

}  // namespace
}  // namespace folio
