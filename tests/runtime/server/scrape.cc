#include "tests/runtime/server/scrape.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <regex>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace folio {
namespace {

// The labels of `key` in the order of their names, `le` taken out of them.
std::string WithoutBound(const std::string& key, std::string& bound) {
  static const std::regex le("le=\"([^\"]*)\",?");
  std::smatch match;
  if (!std::regex_search(key, match, le)) return "";
  bound = match[1];
  return std::regex_replace(key, le, "");
}

std::string SortedLabels(const std::string& labels) {
  static const std::regex label(
      R"re(([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)")re");
  std::map<std::string, std::string> sorted;
  size_t length = 0;
  for (std::sregex_iterator i(labels.begin(), labels.end(), label), end;
       i != end; ++i) {
    EXPECT_TRUE(sorted.emplace((*i)[1], (*i)[2]).second) << labels;
    length += i->length() + 1;  // With the comma between them.
  }
  EXPECT_EQ(length, labels.empty() ? 0 : labels.size() + 1) << labels;
  return absl::StrJoin(sorted, ",", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.first, "=\"", entry.second, "\"");
  });
}

class Parser {
 public:
  void TakeLine(const std::string& line) {
    static const std::regex comment(
        R"re(# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+))re");
    static const std::regex sample(
        R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+))re");
    std::smatch match;
    if (std::regex_match(line, match, comment)) {
      auto& all = match[1] == "HELP" ? scrape.helps : scrape.types;
      EXPECT_TRUE(all.emplace(match[2], match[3]).second) << line;
      family_ = match[2];
    } else if (std::regex_match(line, match, sample)) {
      TakeSample(match[1], match[2], match[3]);
    } else {
      ADD_FAILURE() << "neither a comment nor a sample: " << line;
    }
  }

  // A bucket holds those before it, and the last one everything.
  void CheckBuckets() const {
    for (const auto& [histogram, buckets] : buckets_) {
      double below = 0;
      for (const auto& [bound, count] : buckets) {
        EXPECT_GE(count, below) << histogram << " up to " << bound;
        below = count;
      }
      EXPECT_EQ(buckets.back().first, "+Inf") << histogram;
      std::string total = histogram;
      total.replace(total.find("_bucket{"), 8, "_count{");
      ASSERT_TRUE(scrape.samples.contains(total)) << total;
      EXPECT_EQ(below, scrape.samples.at(total)) << histogram;
    }
  }

  Scrape scrape;

 private:
  void TakeSample(const std::string& name, const std::string& labels,
                  const std::string& text) {
    double value = 0;
    EXPECT_TRUE(absl::SimpleAtod(text, &value)) << text;
    EXPECT_TRUE(scrape.helps.contains(family_)) << name;
    ASSERT_TRUE(scrape.types.contains(family_)) << name;
    const std::string& type = scrape.types.at(family_);
    if (type == "histogram" || type == "summary") {
      EXPECT_EQ(name.rfind(family_, 0), 0u) << name << " in " << family_;
    } else {
      EXPECT_EQ(name, family_);
    }
    const std::string key = absl::StrCat(name, "{", SortedLabels(labels), "}");
    EXPECT_TRUE(scrape.samples.emplace(key, value).second) << key;
    std::string bound;
    const std::string histogram = WithoutBound(key, bound);
    if (type == "histogram" && !histogram.empty()) {
      buckets_[histogram].emplace_back(bound, value);
    }
  }

  std::string family_;  // Of the last comment.
  // The bounds and counts of each histogram, as they come.
  std::map<std::string, std::vector<std::pair<std::string, double>>> buckets_;
};

std::string ReadAll(int socket) {
  std::string all;
  char buffer[4096];
  for (ssize_t count; (count = read(socket, buffer, sizeof(buffer))) > 0;) {
    all.append(buffer, count);
  }
  return all;
}

}  // namespace

double Scrape::Value(std::string_view name, std::string_view labels) const {
  const std::string key =
      absl::StrCat(std::string(name), "{",
                   SortedLabels(absl::StrCat("model_name=\"scripted\"",
                                             labels.empty() ? "" : ",",
                                             std::string(labels))),
                   "}");
  const auto entry = samples.find(key);
  if (entry != samples.end()) return entry->second;
  ADD_FAILURE() << "no sample " << key;
  return -1;
}

HttpResponse HttpGet(const std::string& address, const std::string& path) {
  const std::vector<std::string> parts = absl::StrSplit(address, ':');
  int port = 0;
  EXPECT_TRUE(parts.size() == 2 && absl::SimpleAtoi(parts[1], &port))
      << address;
  sockaddr_in to = {.sin_family = AF_INET};
  to.sin_port = htons(static_cast<uint16_t>(port));
  EXPECT_EQ(inet_pton(AF_INET, parts[0].c_str(), &to.sin_addr), 1) << address;
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  HttpResponse response;
  const std::string request =
      absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: ", address,
                   "\r\nConnection: close\r\n\r\n");
  if (connect(socket, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0 &&
      send(socket, request.data(), request.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(request.size())) {
    const std::string all = ReadAll(socket);
    const size_t end = all.find("\r\n\r\n");
    EXPECT_NE(end, all.npos) << all;
    response.headers = all.substr(0, end);
    response.body = end == all.npos ? "" : all.substr(end + 4);
    EXPECT_EQ(sscanf(all.c_str(), "HTTP/1.1 %d", &response.status), 1) << all;
  }
  close(socket);
  return response;
}

Scrape ParseScrape(std::string_view text) {
  Parser parser;
  EXPECT_TRUE(text.ends_with('\n'));
  const absl::string_view lines(text.data(), text.size());
  for (absl::string_view line :
       absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    parser.TakeLine(std::string(line));
  }
  parser.CheckBuckets();
  return parser.scrape;
}

Scrape ScrapeOf(const std::string& address) {
  const HttpResponse response = HttpGet(address, "/metrics");
  EXPECT_EQ(response.status, 200);
  return ParseScrape(response.body);
}

}  // namespace folio
