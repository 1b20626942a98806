#include "observe/profile/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "observe/profile/text_report.h"

namespace portico::observe {
namespace {

constexpr int kLeft = 170;   // for the names of requests
constexpr int kWidth = 900;  // of the time
constexpr int kTop = 44;     // legend and axis
constexpr int kLane = 9;     // one of a row's stages
constexpr const char* kColours[] = {"#4878a8", "#e08a3c", "#5a9e5f", "#c05050", "#8a6db0",
                                    "#8c6a50", "#d67fb0", "#7a7a7a", "#b0a23a", "#45a5b5"};

std::string Escaped(std::string_view text, size_t most = 200) {
  std::string out;
  for (const char c : text.substr(0, most)) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out.push_back(static_cast<unsigned char>(c) < 0x20 && c != '\n' ? '?' : c);
    }
  }
  return out;
}

class Picture {
 public:
  Picture(const Profile& profile, const Breakdown& breakdown)
      : profile_(profile), breakdown_(breakdown) {
    rows_ = std::min(kMostRows, breakdown.timelines.size());
    for (size_t i = 0; i < rows_; ++i) {
      const Timeline& timeline = breakdown.timelines[i];
      row_of_.emplace(timeline.request, i);
      if (i == 0 || timeline.begin < begin_) begin_ = timeline.begin;
      end_ = std::max(end_, timeline.end);
    }
    end_ = std::max(end_, begin_ + 1);
    for (const Interval& interval : breakdown.intervals) {
      const auto lane = static_cast<int>(lanes_.size());
      lanes_.emplace(interval.stage, lane);
    }
    row_height_ = std::max<int>(1, static_cast<int>(lanes_.size())) * kLane + 5;
  }

  std::string Draw() {
    const int height = kTop + static_cast<int>(rows_) * row_height_ + 10;
    Print(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
        "viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"11\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        kLeft + kWidth + 20, height, kLeft + kWidth + 20, height);
    Legend();
    Axis(height);
    for (size_t i = 0; i < rows_; ++i) {
      const std::string& name = profile_.words.At(breakdown_.timelines[i].request);
      Print("<text x=\"4\" y=\"{}\">{}</text>\n", Y(i, 0) + 9, Escaped(name, 24));
    }
    for (const Interval& interval : breakdown_.intervals) Bar(interval);
    out_ += "</svg>\n";
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void Print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  double X(int64_t at) const {
    return kLeft + static_cast<double>(at - begin_) * kWidth / static_cast<double>(end_ - begin_);
  }
  int Y(size_t row, int lane) const {
    return kTop + static_cast<int>(row) * row_height_ + lane * kLane;
  }
  static const char* Colour(int lane) {
    return kColours[static_cast<size_t>(lane) % std::size(kColours)];
  }

  void Legend() {
    int x = kLeft;
    for (const auto& [stage, lane] : lanes_) {
      const std::string& name = profile_.words.At(stage);
      Print(
          "<rect x=\"{}\" y=\"6\" width=\"10\" height=\"10\" fill=\"{}\"/>"
          "<text x=\"{}\" y=\"15\">{}</text>\n",
          x, Colour(lane), x + 14, Escaped(name, 24));
      x += 30 + 7 * static_cast<int>(std::min<size_t>(name.size(), 24));
    }
  }

  void Axis(int height) {
    constexpr int kTicks = 10;
    for (int i = 0; i <= kTicks; ++i) {
      const int64_t at = begin_ + (end_ - begin_) * i / kTicks;
      Print(
          "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#dddddd\"/>"
          "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\" fill=\"#555555\">{4:.1f} ms"
          "</text>\n",
          X(at), kTop - 8, height - 6, kTop - 12, static_cast<double>(at - begin_) / 1e6);
    }
  }

  void Bar(const Interval& interval) {
    const auto row = row_of_.find(interval.request);
    if (row == row_of_.end()) return;
    const int lane = lanes_.at(interval.stage);
    const double x = X(interval.begin);
    const double ms = static_cast<double>(interval.end - interval.begin) / 1e6;
    Print(
        "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" "
        "fill-opacity=\"0.45\"><title>{} {} to {}: {:.3f} ms</title></rect>\n",
        x, Y(row->second, lane), std::max(0.6, X(interval.end) - x), kLane - 1, Colour(lane),
        Escaped(profile_.words.At(interval.stage)), IntervalBegin(interval.kind),
        IntervalEnd(interval.kind), ms);
  }

  const Profile& profile_;
  const Breakdown& breakdown_;
  std::string out_;
  size_t rows_ = 0;
  int row_height_ = 0;
  int64_t begin_ = 0;
  int64_t end_ = 0;
  absl::flat_hash_map<uint32_t, size_t> row_of_;
  std::map<uint32_t, int> lanes_;
};

}  // namespace

std::string TimelinePicture(const Profile& profile, const Breakdown& breakdown) {
  return Picture(profile, breakdown).Draw();
}

std::string HtmlReport(const Profile& profile, const Breakdown& breakdown) {
  const std::string title =
      "Profile " + (profile.run_id.empty() ? std::string("without a name") : profile.run_id);
  const std::string text = TextReport(profile, breakdown, 3);
  std::string out = fmt::format(
      "<!doctype html>\n<html><head><meta charset=\"utf-8\"><title>{0}</title>"
      "<style>body{{font-family:sans-serif;margin:24px}}pre{{font-size:12px;overflow-x:auto}}"
      "</style></head><body>\n<h1>{0}</h1>\n",
      Escaped(title));
  if (breakdown.timelines.size() > kMostRows) {
    out +=
        fmt::format("<p>The first {} of {} requests.</p>\n", kMostRows, breakdown.timelines.size());
  }
  out += TimelinePicture(profile, breakdown);
  out += "<pre>" + Escaped(text, text.size()) + "</pre>\n</body></html>\n";
  return out;
}

}  // namespace portico::observe
