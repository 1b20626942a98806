#include "net/socket/host_addresses.h"

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <iterator>
#include <utility>

namespace portico::net {
namespace {

struct Block {
  uint32_t first;
  int bits;
};

// https://www.iana.org/assignments/iana-ipv4-special-registry, and multicast.
constexpr Block kSpecial[] = {
    {0x00000000, 8},   // this network
    {0x0A000000, 8},   // private
    {0x64400000, 10},  // carriers' NAT
    {0x7F000000, 8},   // this machine
    {0xA9FE0000, 16},  // link, clouds' metadata
    {0xAC100000, 12},  // private
    {0xC0000000, 24},  // protocol assignments
    {0xC0000200, 24},  // documentation
    {0xC0586300, 24},  // 6to4 relays
    {0xC0A80000, 16},  // private
    {0xC6120000, 15},  // benchmarks
    {0xC6336400, 24},  // documentation
    {0xCB007100, 24},  // documentation
    {0xE0000000, 3},   // multicast, reserved, broadcast
};

bool IsPublicV4(uint32_t address) {
  return std::none_of(std::begin(kSpecial), std::end(kSpecial), [address](const Block& block) {
    return ((address ^ block.first) >> (32 - block.bits)) == 0;
  });
}

bool IsPublicV6(const boost::asio::ip::address_v6& address) {
  const std::array<unsigned char, 16> bytes = address.to_bytes();
  if (address.scope_id() != 0) return false;
  if ((bytes[0] & 0xE0) != 0x20) return false;  // 2000::/3 is all that is given out
  const uint32_t head = (uint32_t{bytes[0]} << 24) | (uint32_t{bytes[1]} << 16) |
                        (uint32_t{bytes[2]} << 8) | uint32_t{bytes[3]};
  if (head >> 9 == 0x20010000U >> 9) return false;  // 2001::/23: protocols, Teredo among them
  if (head == 0x20010DB8U) return false;            // documentation
  if (head >> 16 == 0x2002U) return false;          // 6to4
  return head >> 12 != 0x3FFF0000U >> 12;           // 3fff::/20: documentation
}

class Lookup final : public HostLookup {
 public:
  using Done = std::function<void(StatusOr<std::vector<std::string>>)>;
  using Executor = boost::asio::io_context::executor_type;
  using Resolver = boost::asio::ip::basic_resolver<boost::asio::ip::tcp, Executor>;

  Lookup(Shard& shard, const std::string& host, Done done)
      : state_(std::make_shared<State>(shard, std::move(done))) {
    boost::system::error_code no_address;
    const auto address = boost::asio::ip::make_address(host, no_address);
    if (!no_address) {
      shard.Post([state = state_, text = address.to_string()] {
        state->Tell(std::vector<std::string>{text});
      });
      return;
    }
    state_->resolver.async_resolve(
        host, "",
        [state = state_](const boost::system::error_code& failed,
                         const Resolver::results_type& found) {
          Shard::Turn turn(state->shard);
          if (failed) {
            return state->Tell(Error(StatusCode::kUnavailable, "no address found"));
          }
          std::vector<std::string> addresses;
          for (const auto& entry : found) {
            std::string text = entry.endpoint().address().to_string();
            const bool known =
                std::find(addresses.begin(), addresses.end(), text) != addresses.end();
            if (!known) addresses.push_back(std::move(text));
          }
          state->Tell(std::move(addresses));
        });
  }
  ~Lookup() override {
    state_->done = nullptr;
    state_->resolver.cancel();
  }

 private:
  struct State {
    State(Shard& on, Done then) : shard(on), resolver(on.io()), done(std::move(then)) {}
    void Tell(StatusOr<std::vector<std::string>> result) {
      if (Done told = std::exchange(done, nullptr)) told(std::move(result));
    }
    Shard& shard;
    Resolver resolver;
    Done done;
  };
  std::shared_ptr<State> state_;
};

}  // namespace

bool IsPublicAddress(std::string_view address) {
  boost::system::error_code error;
  const auto read = boost::asio::ip::make_address(std::string(address), error);
  if (error) return false;
  if (read.is_v4()) return IsPublicV4(read.to_v4().to_uint());
  const auto v6 = read.to_v6();
  if (v6.is_v4_mapped()) {
    return IsPublicV4(boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, v6).to_uint());
  }
  return IsPublicV6(v6);
}

std::unique_ptr<HostLookup> HostLookup::Start(
    Shard& shard, const std::string& host,
    std::function<void(StatusOr<std::vector<std::string>>)> done) {
  return std::make_unique<Lookup>(shard, host, std::move(done));
}

}  // namespace portico::net
