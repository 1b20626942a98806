// The C side of nghttp2 for a client: makes the library's session of a connection, whose callbacks call
// the Http2Connection. Shared by all connections and never changed after it is made.
#pragma once

#include <nghttp2/nghttp2.h>

#include "net/http2/http2_connection.h"

namespace portico::net {

// The caller deletes it. Throws std::bad_alloc.
nghttp2_session* NewHttp2ClientSession(Http2Connection* connection);

// What nghttp2 asks for the bytes of a call's body.
nghttp2_data_provider Http2ClientBody();

}  // namespace portico::net
