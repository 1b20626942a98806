#include "message/sglang/kv_events.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/escaping.h"
#include "message/msgpack/writer.h"

namespace portico::sglang {
namespace {

using msgpack::Writer;

// [timestamp, [a map: two blocks behind a parent, an array of an older release, a kind nobody knows, cleared], rank]
std::string Message() {
  std::string bytes;
  Writer w(&bytes);
  w.Array(3);
  w.Float(1.5);
  w.Array(4);
  w.Map(7);
  w.Str("type");
  w.Str("BlockStored");
  w.Str("block_hashes");
  w.Array(2);
  w.Int(-7);
  w.Int(8);
  w.Str("parent_block_hash");
  w.Int(6);
  w.Str("token_ids");
  w.Array(3);
  for (const int token : {1, 2, 3}) w.Int(token);
  w.Str("block_size");
  w.Int(2);
  w.Str("medium");
  w.Str("CPU_PINNED");
  w.Str("session_id");
  w.Str("s");
  w.Array(2);
  w.Str("BlockRemoved");
  w.Array(1);
  w.Int(9);
  w.Map(1);
  w.Str("type");
  w.Str("BlockMoved");
  w.Map(1);
  w.Str("type");
  w.Str("AllBlocksCleared");
  w.Int(3);
  return bytes;
}

TEST(ReadKvEvents, ReadsBothFormsOfEventsAndLeavesOutUnknownOnes) {
  KvEventBatch batch;
  ASSERT_TRUE(ReadKvEvents(Message(), &batch));
  EXPECT_EQ(batch.timestamp, 1.5);
  EXPECT_EQ(batch.rank, 3);
  ASSERT_EQ(batch.events.size(), 3u);
  const KvEvent& stored = batch.events[0];
  EXPECT_EQ(stored.kind, KvEvent::Kind::kStored);
  EXPECT_EQ(stored.parent, 6);
  EXPECT_EQ(stored.level, 1);
  ASSERT_EQ(stored.blocks.size(), 2u);
  EXPECT_EQ(stored.blocks[0].hash, -7);
  EXPECT_EQ(stored.blocks[0].tokens, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(stored.blocks[1].tokens, (std::vector<int32_t>{3}));
  EXPECT_EQ(batch.events[1].removed, (std::vector<int64_t>{9}));
  EXPECT_EQ(batch.events[2].kind, KvEvent::Kind::kCleared);
}

TEST(ReadKvEvents, RefusesEveryTruncation) {
  const std::string message = Message();
  for (size_t size = 0; size < message.size(); ++size) {
    KvEventBatch batch;
    EXPECT_FALSE(ReadKvEvents(std::string_view(message).substr(0, size), &batch)) << size;
  }
}

// As the engines' own structures write BlockStored of tokens 1 and 2, BlockRemoved and AllBlocksCleared.
constexpr char kOfSglang[] =
    "93cb3ff80000000000009387a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657391f9b17061"
    "72656e745f626c6f636b5f"
    "68617368c0a9746f6b656e5f696473920102aa626c6f636b5f73697a6502a76c6f72615f6964c0a66d656469756da3"
    "47505583a474797065ac42"
    "6c6f636b52656d6f766564ac626c6f636b5f68617368657391f9a66d656469756daa4350555f50494e4e454481a474"
    "797065b0416c6c426c6f63"
    "6b73436c656172656400";
constexpr char kOfVllm[] =
    "93cb3ff8000000000000938aa474797065ab426c6f636b53746f726564ac626c6f636b5f6861736865739107b17061"
    "72656e745f626c6f636b5f"
    "68617368c0a9746f6b656e5f696473920102aa626c6f636b5f73697a6502a76c6f72615f6964c0a66d656469756da3"
    "475055a96c6f72615f6e61"
    "6d65c0aa65787472615f6b65797391c0a967726f75705f6964780084a474797065ac426c6f636b52656d6f766564ac"
    "626c6f636b5f6861736865"
    "739107a66d656469756da3475055a967726f75705f6964780081a474797065b0416c6c426c6f636b73436c65617265"
    "6400";

TEST(ReadKvEvents, ReadsWhatSglangAndVllmWrite) {
  for (const auto& [hex, name, removed_level] :
       {std::tuple{kOfSglang, -7, 1}, std::tuple{kOfVllm, 7, 0}}) {
    KvEventBatch batch;
    size_t unknown = 0;
    ASSERT_TRUE(ReadKvEvents(absl::HexStringToBytes(hex), &batch, &unknown));
    EXPECT_EQ(unknown, 0u);
    EXPECT_EQ(batch.rank, 0);
    ASSERT_EQ(batch.events.size(), 3u);
    ASSERT_EQ(batch.events[0].blocks.size(), 1u);
    EXPECT_EQ(batch.events[0].blocks[0].hash, name);
    EXPECT_EQ(batch.events[0].blocks[0].tokens, (std::vector<int32_t>{1, 2}));
    EXPECT_EQ(batch.events[0].level, 0);
    EXPECT_EQ(batch.events[1].removed, (std::vector<int64_t>{name}));
    EXPECT_EQ(batch.events[1].level, removed_level);
    EXPECT_EQ(batch.events[2].kind, KvEvent::Kind::kCleared);
  }
}

// A batch that is a map, with one event: two blocks of two tokens whose names are digests, and a last member.
std::string Stored(std::string_view member, const std::function<void(Writer*)>& value) {
  std::string bytes;
  Writer w(&bytes);
  w.Map(3);
  w.Str("ts");
  w.Float(1);
  w.Str("data_parallel_rank");
  w.Int(2);
  w.Str("events");
  w.Array(1);
  w.Map(5);
  w.Str("type");
  w.Str("BlockStored");
  w.Str("block_hashes");
  w.Array(2);
  w.Bin(std::string(31, 'x') + '\x05');
  w.Bin(std::string(31, 'x') + '\x06');
  w.Str("token_ids");
  w.Array(4);
  for (const int token : {1, 2, 3, 4}) w.Int(token);
  w.Str("block_size");
  w.Int(2);
  w.Str(member);
  value(&w);
  return bytes;
}

size_t BlocksRead(std::string_view member, const std::function<void(Writer*)>& value) {
  KvEventBatch batch;
  EXPECT_TRUE(ReadKvEvents(Stored(member, value), &batch)) << member;
  EXPECT_EQ(batch.rank, 2);
  return batch.events.empty() ? 0 : batch.events[0].blocks.size();
}

TEST(ReadKvEvents, LeavesOutBlocksThatTheirTokensAloneDoNotName) {
  const auto name = [](Writer* w) { w->Str("name"); };
  const auto nil = [](Writer* w) { w->Nil(); };
  const auto number = [](int value) { return [value](Writer* w) { w->Int(value); }; };
  EXPECT_EQ(BlocksRead("lora_name", nil), 2u);
  EXPECT_EQ(BlocksRead("lora_name", name), 0u);
  EXPECT_EQ(BlocksRead("cache_salt", nil), 2u);
  EXPECT_EQ(BlocksRead("cache_salt", name), 0u);
  EXPECT_EQ(BlocksRead("group_idx", number(0)), 2u);
  EXPECT_EQ(BlocksRead("group_idx", number(1)), 0u);
  EXPECT_EQ(BlocksRead("locality", name), 2u);
  EXPECT_EQ(BlocksRead("locality", [](Writer* w) { w->Str("REMOTE"); }), 0u);
  // A picture in the second block.
  EXPECT_EQ(BlocksRead("extra_keys",
                       [](Writer* w) {
                         w->Array(2);
                         w->Nil();
                         w->Array(1);
                         w->Str("a picture");
                       }),
            1u);
}

}  // namespace
}  // namespace portico::sglang
