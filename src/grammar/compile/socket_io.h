// Whole reads and writes on sockets, and a file descriptor with a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace portico::grammar {

// False: the other side has gone.
bool WriteAll(int fd, std::string_view bytes);
// Until the other side has closed its end.
bool ReadAll(int fd, std::string* bytes);

bool SendFd(int socket, const void* message, size_t size, int fd);
// Blocks. False: the other side has closed.
bool ReceiveFd(int socket, void* message, size_t size, int* fd);

}  // namespace portico::grammar
