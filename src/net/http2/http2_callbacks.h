// The C side of nghttp2: makes the library's session of a server's connection, whose callbacks call
// the Http2Session. Shared by all connections and never changed after it is made.
#pragma once

#include <nghttp2/nghttp2.h>

#include "net/http2/http2_session.h"

namespace portico::net {

// Null if out of memory. The caller deletes it.
nghttp2_session* NewHttp2Server(Http2Session* session);

// What nghttp2 asks for the bytes of an answer.
nghttp2_data_provider Http2Body(Http2Stream* stream);

}  // namespace portico::net
