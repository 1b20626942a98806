#include "load_text.h"

#include <fstream>
#include <iterator>
#include <random>
#include <utility>

namespace {

const char* const kWords[] = {
    "about",     "above",      "account",    "across",   "action",     "address",   "afternoon",
    "again",     "agree",      "airport",    "allow",    "almost",     "already",   "although",
    "always",    "amount",     "animal",     "another",  "answer",     "anyone",    "appear",
    "apple",     "argue",      "around",     "arrive",   "article",    "attention", "autumn",
    "average",   "away",       "balance",    "bank",     "basket",     "beautiful", "because",
    "become",    "before",     "begin",      "behind",   "believe",    "better",    "between",
    "bicycle",   "board",      "book",       "bottle",   "bread",      "bridge",    "bring",
    "brother",   "build",      "business",   "butter",   "camera",     "careful",   "carry",
    "castle",    "catch",      "central",    "century",  "certain",    "chair",     "change",
    "cheap",     "children",   "choose",     "city",     "clean",      "clear",     "clock",
    "cloud",     "coffee",     "cold",       "collect",  "colour",     "common",    "company",
    "compare",   "complete",   "consider",   "contain",  "cook",       "corner",    "correct",
    "cost",      "country",    "course",     "cover",    "create",     "cross",     "daughter",
    "decide",    "deep",       "degree",     "describe", "desk",       "develop",   "difference",
    "difficult", "dinner",     "direct",     "discover", "discuss",    "distance",  "doctor",
    "door",      "double",     "dream",      "dress",    "drive",      "during",    "early",
    "earth",     "easy",       "education",  "effort",   "either",     "electric",  "else",
    "empty",     "engine",     "enough",     "evening",  "event",      "every",     "example",
    "except",    "expect",     "experience", "explain",  "eye",        "fact",      "family",
    "famous",    "farm",       "father",     "feel",     "field",      "figure",    "final",
    "finger",    "finish",     "fire",       "floor",    "flower",     "follow",    "food",
    "foreign",   "forest",     "forget",     "former",   "forward",    "free",      "fresh",
    "friend",    "front",      "fruit",      "garden",   "general",    "glass",     "government",
    "grass",     "great",      "green",      "ground",   "group",      "guess",     "hand",
    "happen",    "happy",      "hard",       "health",   "heart",      "heavy",     "history",
    "hold",      "holiday",    "hospital",   "hotel",    "house",      "however",   "hundred",
    "idea",      "imagine",    "important",  "include",  "increase",   "inside",    "instead",
    "interest",  "island",     "join",       "journey",  "keep",       "kitchen",   "knowledge",
    "language",  "large",      "later",      "laugh",    "learn",      "leave",     "letter",
    "library",   "light",      "listen",     "little",   "local",      "machine",   "market",
    "matter",    "measure",    "meeting",    "member",   "message",    "middle",    "might",
    "minute",    "modern",     "moment",     "money",    "month",      "morning",   "mother",
    "mountain",  "music",      "narrow",     "nation",   "nature",     "nearly",    "necessary",
    "neither",   "never",      "notice",     "number",   "object",     "ocean",     "offer",
    "office",    "often",      "open",       "opinion",  "orange",     "order",     "ordinary",
    "other",     "outside",    "paper",      "parent",   "particular", "pattern",   "pencil",
    "people",    "perhaps",    "period",     "picture",  "piece",      "plain",     "planet",
    "plant",     "please",     "point",      "possible", "pretty",     "price",     "probably",
    "problem",   "produce",    "promise",    "protect",  "provide",    "public",    "purpose",
    "quarter",   "question",   "quick",      "quiet",    "quite",      "railway",   "rather",
    "reach",     "ready",      "reason",     "receive",  "record",     "remember",  "repeat",
    "report",    "result",     "return",     "river",    "round",      "school",    "science",
    "season",    "second",     "secret",     "sentence", "separate",   "several",   "shadow",
    "shape",     "should",     "silver",     "similar",  "simple",     "since",     "sister",
    "slowly",    "small",      "soldier",    "someone",  "spring",     "square",    "station",
    "story",     "straight",   "strange",    "street",   "student",    "subject",   "sudden",
    "summer",    "surface",    "surprise",   "system",   "table",      "teacher",   "therefore",
    "thought",   "thousand",   "through",    "together", "tomorrow",   "travel",    "trouble",
    "under",     "understand", "university", "until",    "usual",      "valley",    "village",
    "visit",     "voice",      "wait",       "water",    "weather",    "week",      "welcome",
    "whether",   "window",     "winter",     "without",  "wonder",     "word",      "world",
    "write",     "yellow",     "yesterday"};

std::string Request(const std::string& path, const std::string& body) {
  return "POST " + path +
         " HTTP/1.1\r\nhost: 127.0.0.1\r\nuser-agent: load/1\r\naccept: */*\r\n"
         "content-type: application/json\r\ncontent-length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace

ChatRequests::ChatRequests(std::string model, size_t prompt_bytes, int max_tokens, bool stream)
    : model_(std::move(model)),
      prompt_bytes_(prompt_bytes),
      tail_("\"}],\"temperature\":0.7,\"max_tokens\":" + std::to_string(max_tokens) +
            (stream ? ",\"stream\":true}" : "}")),
      state_(std::random_device{}() * 0x9e3779b97f4a7c15u + 1) {}

uint64_t ChatRequests::Random() {
  state_ ^= state_ << 13;
  state_ ^= state_ >> 7;
  state_ ^= state_ << 17;
  return state_;
}

void ChatRequests::AppendPrompt(std::string* out) {
  size_t end = out->size() + prompt_bytes_;
  int left = 0;  // words of the sentence
  while (out->size() < end) {
    bool first = left == 0;
    if (first) left = 5 + static_cast<int>(Random() % 14);
    std::string word = kWords[Random() % std::size(kWords)];
    if (first) word[0] = static_cast<char>(word[0] - 'a' + 'A');
    out->append(word);
    if (--left == 0) {
      out->append(". ");
    } else {
      out->append(Random() % 12 == 0 ? ", " : " ");
    }
    if (Random() % 40 == 0) out->append(std::to_string(Random() % 10000)).append(" ");
  }
  out->resize(end);
}

std::vector<std::string> GivenRequests(const std::string& path, const std::string& file) {
  std::vector<std::string> requests;
  if (file.empty()) return requests;
  std::ifstream lines(file);
  for (std::string body; std::getline(lines, body);) requests.push_back(Request(path, body));
  return requests;
}

std::string ChatRequests::Next() {
  std::string body = "{\"model\":\"" + model_ +
                     "\",\"messages\":[{\"role\":\"system\",\"content\":\"You are a helpful "
                     "assistant.\"},{\"role\":\"user\",\"content\":\"";
  AppendPrompt(&body);
  body += tail_;
  return Request("/v1/chat/completions", body);
}
