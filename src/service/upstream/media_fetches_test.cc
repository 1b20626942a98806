#include "service/upstream/media_fetches.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "net/loop/run_on_shard_for_test.h"

namespace portico {
namespace {

class MediaFetchesTest : public testing::Test {
 protected:
  MediaFetchesTest() {
    std::filesystem::create_directory(folder_);
    limits_.rules.local_folder = folder_;
    limits_.Of(MediaKind::kImage).item_bytes = 10;
    limits_.Of(MediaKind::kImage).total_bytes = 25;
    shard_.Start();
  }
  ~MediaFetchesTest() override {
    net::RunOnShard(shard_, [this] { fetches_.reset(); });
    shard_.Stop();
    std::filesystem::remove_all(folder_);
  }

  std::string File(const std::string& name, size_t bytes) const {
    std::ofstream(folder_ + "/" + name) << std::string(bytes, 'x');
    return folder_ + "/" + name;
  }
  static std::shared_ptr<const RequestMedia> Prompt(const std::vector<std::string>& urls) {
    auto media = std::make_shared<RequestMedia>();
    for (const std::string& url : urls) {
      MediaItem& item = media->items.emplace_back();
      item.field = "image_data";
      item.place = "image_data[0]";
      item.url = url;
    }
    return media;
  }
  StatusOr<MediaFetches::List> Fetch(const MediaFetches::List& wanted) {
    std::promise<StatusOr<MediaFetches::List>> fetched;
    net::RunOnShard(shard_, [&] {
      fetches_ = MediaFetches::Start(shard_, pool_, limits_, wanted,
                                     [&](auto list) { fetched.set_value(std::move(list)); });
    });
    return fetched.get_future().get();
  }

  const std::string folder_ = testing::TempDir() + "fetches-" + std::to_string(getpid());
  MediaLimits limits_;
  CpuPool pool_{1, 10};
  net::Shard shard_{0};
  std::unique_ptr<MediaFetches> fetches_;
};

// The bound of a prompt was one of the request where its media were fetched: the fourth of a batch was refused.
TEST_F(MediaFetchesTest, EachPromptHasItsOwnBound) {
  const std::string file = File("a.png", 10);
  const MediaFetches::List wanted(5, Prompt({file, file}));
  const auto fetched = Fetch(wanted);
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  ASSERT_EQ(fetched->size(), 5u);
  EXPECT_EQ((*fetched)[4]->items[1].bytes->size(), 10u);
}

TEST_F(MediaFetchesTest, TheBoundThatIsMetIsNamed) {
  const auto together = Fetch({Prompt(std::vector<std::string>(3, File("a.png", 10)))});
  EXPECT_EQ(MessageOf(together.status()),
            "image_data[0] is too large: all of its kind in a prompt have at most 25 bytes");
  const auto alone = Fetch({Prompt({File("b.png", 11)})});
  EXPECT_EQ(MessageOf(alone.status()), "image_data[0] has more than 10 bytes");
}

}  // namespace
}  // namespace portico
