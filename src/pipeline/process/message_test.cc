#include "pipeline/process/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pipeline/process/unix_channel.h"

namespace portico::pipeline {
namespace {

using ::testing::HasSubstr;

// A message after its way through a socket.
StatusOr<Message> Through(const StatusOr<Datagram>& datagram) {
  if (!datagram.ok()) return datagram.status();
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return Error(StatusCode::kInternal, "socketpair");
  }
  const Fd one(ends[0]);
  const Fd other(ends[1]);
  EXPECT_EQ(SendDatagram(one.get(), *datagram, /*wait=*/true), Sent::kYes);
  auto received = ReceiveDatagram(other.get(), /*wait=*/true);
  if (!received.ok()) return received.status();
  return ReadMessage(received->message);
}

template <typename T>
T PartThrough(const T& part) {
  auto message = Through(PartMessage(MessageKind::kPart, 7, "source", Part(part)));
  EXPECT_TRUE(message.ok()) << message.status();
  if (!message.ok()) return T{};
  EXPECT_EQ(message->run, 7U);
  EXPECT_EQ(message->name, "source");
  EXPECT_TRUE(std::holds_alternative<T>(message->part));
  return std::get<T>(std::move(message->part));
}

TEST(StageMessage, CarriesEveryKindOfPart) {
  EXPECT_EQ(PartThrough(TextPart{"grüezi"}).text, "grüezi");
  const auto file = PartThrough(FilePart{2, std::make_shared<const std::string>("\0\xff", 2)});
  EXPECT_EQ(file.clip, 2);
  EXPECT_EQ(*file.bytes, std::string("\0\xff", 2));
  const auto audio = PartThrough(AudioPart{1, 24000, {-32768, 0, 32767}, true});
  EXPECT_EQ(audio.samples, (media::Samples{-32768, 0, 32767}));
  EXPECT_EQ(audio.sample_rate, 24000);
  EXPECT_TRUE(audio.last);
  const auto heard = PartThrough(HeardPart{0, "a b", 0.5, 1.5, {{"a", 0.5, 0.75}, {"b", 1, 1.5}}});
  EXPECT_EQ(heard.text, "a b");
  ASSERT_EQ(heard.words.size(), 2U);
  EXPECT_EQ(heard.words[1].word, "b");
  EXPECT_EQ(heard.words[1].begin, 1);
  EXPECT_EQ(PartThrough(ClipEndPart{3, 2.25}).seconds, 2.25);
  const auto encoded = PartThrough(EncodedPart{"bytes", 16000, 0.25});
  EXPECT_EQ(encoded.bytes, "bytes");
  EXPECT_EQ(encoded.seconds, 0.25);
  const auto finish = PartThrough(FinishPart{"length", 11, 300});
  EXPECT_EQ(finish.reason, "length");
  EXPECT_EQ(finish.completion_tokens, 300);
  const auto call = PartThrough(ToolCallPart{1, "call_1", "look", "{\"a\":1}"});
  EXPECT_EQ(call.name + call.id + call.arguments, "lookcall_1{\"a\":1}");
  const auto tensor = PartThrough(TensorPart{"x", "float32", {1, 2}, Blob::Own("12345678")});
  EXPECT_EQ(tensor.shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(tensor.data->bytes(), "12345678");
}

TEST(StageMessage, LargeBytesLieInSharedMemoryAndAreNotCopiedAgain) {
  const std::string text(1 << 20, 'x');
  EXPECT_EQ(PartThrough(TextPart{text}).text, text);
  const auto shared = Blob::Share(text);
  ASSERT_TRUE(shared.ok()) << shared.status();
  const TensorPart tensor{"x", "uint8", {1 << 20}, *shared};
  const auto datagram = PartMessage(MessageKind::kEmit, 1, {}, Part(tensor));
  ASSERT_TRUE(datagram.ok());
  EXPECT_EQ(datagram->blob, *shared);
  EXPECT_LT(datagram->bytes.size(), 100U);
  EXPECT_EQ(PartThrough(tensor).data->bytes(), text);
}

TEST(StageMessage, ALongRequestLiesInSharedMemoryAsAWhole) {
  const std::string json = "\"" + std::string(300000, 'y') + "\"";
  const auto message = Through(StartMessage(9, "say", json));
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->kind, MessageKind::kStart);
  EXPECT_EQ(message->name, "say");
  EXPECT_EQ(message->text, json);
}

TEST(StageMessage, AnEndHasItsStatus) {
  const auto message = Through(EndMessage(5, InvalidArgument("input", "not that")));
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(MessageOf(message->status), "not that");
  EXPECT_EQ(FieldOf(message->status), "input");
  EXPECT_TRUE(Through(EndMessage(5, OkStatus()))->status.ok());
}

TEST(StageMessage, ARequestIsTheSameOnTheOtherSide) {
  Request request;
  request.id = "r1";
  request.task = Task::kChat;
  request.wants_audio = true;
  request.speech = {"rms", media::AudioFormat::kFlac, 8000, 1.5};
  request.stage_params = *Json::Parse(R"({"say":{"x":1}})");
  auto chat = std::make_shared<ChatRequest>();
  chat->messages = *Json::Parse(R"([{"role":"user","content":"hi"}])");
  request.chat = chat;
  const auto read = ReadRequest(RequestJson(request));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->id, "r1");
  EXPECT_EQ(read->task, Task::kChat);
  EXPECT_TRUE(read->wants_audio);
  EXPECT_EQ(read->speech.voice, "rms");
  EXPECT_EQ(read->speech.format, media::AudioFormat::kFlac);
  EXPECT_EQ(read->speech.sample_rate, 8000);
  EXPECT_EQ(read->speech.speed, 1.5);
  EXPECT_EQ(read->Param("say", "x")->as_int(), 1);
  EXPECT_EQ(read->chat->messages, chat->messages);
}

TEST(StageMessage, ASpeechTellsItsStagesOfSampling) {
  Request request;
  request.sampling = *Json::Parse(R"({"seed":7})");
  const auto json = Json::Parse(RequestJson(request));
  ASSERT_TRUE(json.ok());
  ASSERT_NE(json->Find("sampling"), nullptr);
  EXPECT_EQ(json->Find("sampling")->GetInt("seed", 0), 7);
}

TEST(StageMessage, APartForOneStageHasItsName) {
  const auto message =
      Through(PartMessage(MessageKind::kEmitTo, 3, "left", Part(TextPart{"here"})));
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->kind, MessageKind::kEmitTo);
  EXPECT_EQ(message->name, "left");
  EXPECT_EQ(std::get<TextPart>(message->part).text, "here");
}

TEST(StageMessage, AnEndOfOneSourceHasItsName) {
  const auto message = Through(SourceEndMessage(3, "left"));
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->kind, MessageKind::kSourceEnd);
  EXPECT_EQ(message->name, "left");
  EXPECT_EQ(Through(RunMessage(MessageKind::kGathered, 3))->kind, MessageKind::kGathered);
}

TEST(StageMessage, AReferenceIsSoundBehindTheStart) {
  const ReferenceSound sound(
      media::Sound{.sample_rate = 8000, .samples = media::Samples(100000, 7)});
  const auto message = Through(ReferenceMessage(3, 2, sound));
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->kind, MessageKind::kReference);
  EXPECT_EQ(message->run, 3U);
  const auto& audio = std::get<AudioPart>(message->part);
  EXPECT_EQ(audio.clip, 2);
  EXPECT_EQ(audio.sample_rate, 8000);
  EXPECT_TRUE(audio.last);
  EXPECT_EQ(audio.samples, sound.samples);
}

// Each request had a copy: a batch of 32 that imitates 60 s held 180 MB.
TEST(StageMessage, AReferenceIsInSharedMemoryOnce) {
  const ReferenceSound sound(
      media::Sound{.sample_rate = 8000, .samples = media::Samples(100000, 7)});
  const auto one = ReferenceMessage(3, 0, sound);
  const auto other = ReferenceMessage(4, 1, sound);
  ASSERT_TRUE(one.ok() && other.ok());
  ASSERT_NE(one->blob, nullptr);
  EXPECT_EQ(one->blob, other->blob);
}

TEST(StageMessage, AStageIsToldOnlyTheSpeechFieldsThatItTakes) {
  Request request;
  const auto sound = std::make_shared<const ReferenceSound>(media::Sound());
  request.references = {{"ref_audio", "hello", sound}, {"references", "two", sound}};
  request.speech_fields = *Json::Parse(R"({"task_type":"Base","token_count":5})");
  const auto told = [&request](const std::vector<std::string>& takes) {
    return *Json::Parse(RequestJson(request, takes));
  };
  EXPECT_EQ(told({}).Find("references"), nullptr);
  EXPECT_EQ(told({}).Find("speech_fields"), nullptr);
  const Json sounds = told({"ref_audio", "task_type"});
  EXPECT_EQ(*sounds.Find("references"), *Json::Parse(R"([{"text":""}])"));
  EXPECT_EQ(*sounds.Find("speech_fields"), *Json::Parse(R"({"task_type":"Base"})"));
  const Json all = told({"ref_audio", "ref_text", "references"});
  EXPECT_EQ(*all.Find("references"), *Json::Parse(R"([{"text":"hello"},{"text":"two"}])"));
}

TEST(StageMessage, RefusesBytesThatAreNoMessage) {
  const auto good =
      PartMessage(MessageKind::kEmit, 1, {}, Part(AudioPart{0, 16000, {1, 2}, false}));
  ASSERT_TRUE(good.ok());
  ASSERT_TRUE(ReadMessage({good->bytes, nullptr}).ok());
  for (size_t size = 0; size < good->bytes.size(); ++size) {
    EXPECT_FALSE(ReadMessage({good->bytes.substr(0, size), nullptr}).ok()) << size;
  }
  EXPECT_FALSE(ReadMessage({good->bytes + "x", nullptr}).ok());
  const auto text = PartMessage(MessageKind::kEmit, 1, {}, Part(TextPart{"\xff"}));
  ASSERT_TRUE(text.ok());
  EXPECT_FALSE(ReadMessage({text->bytes, nullptr}).ok());
  const auto rate = PartMessage(MessageKind::kEmit, 1, {}, Part(AudioPart{0, -1, {}, false}));
  ASSERT_TRUE(rate.ok());
  EXPECT_FALSE(ReadMessage({rate->bytes, nullptr}).ok());
  EXPECT_FALSE(ReadMessage({std::string("\1", 1), nullptr}).ok());
}

TEST(StageMessage, SeveralTravelTogetherInTheirOrder) {
  Datagram packed;
  for (uint64_t run = 1; run <= 3; ++run) {
    const auto part = PartMessage(MessageKind::kEmit, run, {}, Part(TextPart{"é"}));
    ASSERT_TRUE(part.ok());
    EXPECT_TRUE(Pack(*part, &packed));
    EXPECT_TRUE(Pack(RunMessage(MessageKind::kTook, run), &packed));
  }
  const auto messages = ReadMessages(packed);
  ASSERT_TRUE(messages.ok()) << messages.status();
  ASSERT_EQ(messages->size(), 6U);
  for (uint64_t run = 1; run <= 3; ++run) {
    const Message& part = (*messages)[2 * (run - 1)];
    EXPECT_EQ(part.kind, MessageKind::kEmit);
    EXPECT_EQ(part.run, run);
    EXPECT_EQ(std::get<TextPart>(part.part).text, "é");
    EXPECT_EQ((*messages)[2 * run - 1].kind, MessageKind::kTook);
    EXPECT_EQ((*messages)[2 * run - 1].run, run);
  }
  EXPECT_FALSE(ReadMessage(packed).ok()) << "it is not one";
  const auto one = ReadMessages(RunMessage(MessageKind::kTook, 7));
  ASSERT_TRUE(one.ok());
  ASSERT_EQ(one->size(), 1U);
  EXPECT_EQ(one->front().run, 7U);
}

TEST(StageMessage, WhatIsCutOrLiesInMemoryDoesNotTravelWithOthers) {
  Datagram packed;
  ASSERT_TRUE(Pack(RunMessage(MessageKind::kTook, 1), &packed));
  const size_t first = packed.bytes.size();
  ASSERT_TRUE(Pack(EndMessage(2, OkStatus()), &packed));
  for (size_t size = 1; size < packed.bytes.size(); ++size) {
    EXPECT_EQ(ReadMessages({packed.bytes.substr(0, size), nullptr}).ok(), size == first) << size;
  }
  EXPECT_FALSE(ReadMessages({packed.bytes, Blob::Own("x")}).ok());
  const auto large = PartMessage(MessageKind::kEmit, 1, {},
                                 Part(AudioPart{0, 16000, media::Samples(1 << 20), false}));
  ASSERT_TRUE(large.ok());
  ASSERT_NE(large->blob, nullptr);
  const std::string before = packed.bytes;
  EXPECT_FALSE(Pack(*large, &packed));
  EXPECT_FALSE(Pack(packed, &packed));
  EXPECT_EQ(packed.bytes, before);
}

// Who may still shorten the memory could end its reader by SIGBUS.
TEST(StageMessage, RefusesMemoryThatIsNotSealed) {
  Fd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(fd.get(), 4096), 0);
  EXPECT_THAT(Blob::Map(std::move(fd)).status().message(), HasSubstr("sealed"));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Fd writer(ends[1]);
  EXPECT_FALSE(Blob::Map(Fd(ends[0])).ok());
}

}  // namespace
}  // namespace portico::pipeline
