// libzmq, loaded when it is first needed: it brings a dozen libraries, a megabyte of each process's memory that most never use.
#pragma once

#include <zmq.h>

namespace portico::net {

struct ZmqLibrary {
  decltype(&zmq_bind) bind;
  decltype(&zmq_close) close;
  decltype(&zmq_connect) connect;
  decltype(&zmq_ctx_new) ctx_new;
  decltype(&zmq_ctx_set) ctx_set;
  decltype(&zmq_ctx_term) ctx_term;
  decltype(&zmq_errno) error;
  decltype(&zmq_getsockopt) getsockopt;
  decltype(&zmq_msg_close) msg_close;
  decltype(&zmq_msg_data) msg_data;
  decltype(&zmq_msg_init) msg_init;
  decltype(&zmq_msg_init_data) msg_init_data;
  decltype(&zmq_msg_more) msg_more;
  decltype(&zmq_msg_recv) msg_recv;
  decltype(&zmq_msg_send) msg_send;
  decltype(&zmq_msg_size) msg_size;
  decltype(&zmq_poll) poll;
  decltype(&zmq_send) send;
  decltype(&zmq_setsockopt) setsockopt;
  decltype(&zmq_socket) socket;
  decltype(&zmq_socket_monitor) socket_monitor;
  decltype(&zmq_strerror) strerror;
};

// Null: it is not installed. Any thread; stays until the process ends.
const ZmqLibrary* LoadZmq();

}  // namespace portico::net
