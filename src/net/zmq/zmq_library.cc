#include "net/zmq/zmq_library.h"

#include <dlfcn.h>

#include "base/log.h"

namespace portico::net {
namespace {

constexpr char kName[] = "libzmq.so.5";  // of the header's version

template <typename Function>
bool Find(void* handle, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(handle, name));
  return *function != nullptr;
}

const ZmqLibrary* Load() {
  void* handle = dlopen(kName, RTLD_NOW | RTLD_LOCAL);
  static ZmqLibrary zmq;
  const bool whole =
      handle != nullptr && Find(handle, "zmq_bind", &zmq.bind) &&
      Find(handle, "zmq_close", &zmq.close) && Find(handle, "zmq_connect", &zmq.connect) &&
      Find(handle, "zmq_ctx_new", &zmq.ctx_new) && Find(handle, "zmq_ctx_set", &zmq.ctx_set) &&
      Find(handle, "zmq_ctx_term", &zmq.ctx_term) && Find(handle, "zmq_errno", &zmq.error) &&
      Find(handle, "zmq_getsockopt", &zmq.getsockopt) &&
      Find(handle, "zmq_msg_close", &zmq.msg_close) &&
      Find(handle, "zmq_msg_data", &zmq.msg_data) && Find(handle, "zmq_msg_init", &zmq.msg_init) &&
      Find(handle, "zmq_msg_init_data", &zmq.msg_init_data) &&
      Find(handle, "zmq_msg_more", &zmq.msg_more) && Find(handle, "zmq_msg_recv", &zmq.msg_recv) &&
      Find(handle, "zmq_msg_send", &zmq.msg_send) && Find(handle, "zmq_msg_size", &zmq.msg_size) &&
      Find(handle, "zmq_poll", &zmq.poll) && Find(handle, "zmq_send", &zmq.send) &&
      Find(handle, "zmq_setsockopt", &zmq.setsockopt) && Find(handle, "zmq_socket", &zmq.socket) &&
      Find(handle, "zmq_socket_monitor", &zmq.socket_monitor) &&
      Find(handle, "zmq_strerror", &zmq.strerror);
  if (whole) return &zmq;
  const char* why = dlerror();
  LogError("{} cannot be loaded: {}", kName, why == nullptr ? "no reason given" : why);
  return nullptr;
}

}  // namespace

const ZmqLibrary* LoadZmq() {
  static const ZmqLibrary* const zmq = Load();
  return zmq;
}

}  // namespace portico::net
